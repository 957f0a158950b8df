// SPDX-License-Identifier: Apache-2.0
#include "outrider/ranks.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <exception>
#include <optional>
#include <utility>

#include "engine/speculation.h"
#include "model/load_model.h"
#include "model/ranks/communicator.h"
#include "model/ranks/mpi_module.h"
#include "outrider/error.h"

namespace outrider {
namespace {

std::optional<int> number_in_environment(const char* name) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  const std::string_view digits = text;
  int value = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (problem != std::errc() || end != digits.data() + digits.size() || value < 0) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

Launch detect_launch() {
  const char* const wish = std::getenv("OUTRIDER_RANKS");
  if (wish != nullptr && std::string_view(wish) == "off") return {};
  const auto launch_by = [](const char* launcher, std::optional<int> n_ranks,
                            const char* rank) -> Launch {
    if (n_ranks.value_or(1) < 2) return {};
    return {
        .launcher = launcher, .rank = number_in_environment(rank).value_or(0), .n_ranks = *n_ranks};
  };
  if (const auto n = number_in_environment("OMPI_COMM_WORLD_SIZE")) {
    return launch_by("Open MPI", n, "OMPI_COMM_WORLD_RANK");
  }
  if (const auto n = number_in_environment("PMI_SIZE")) return launch_by("PMI", n, "PMI_RANK");
  if (number_in_environment("PMIX_RANK")) {
    // With PMIx the number needs a query; Slurm's environment has it.
    auto n = number_in_environment("SLURM_STEP_NUM_TASKS");
    if (!n) n = number_in_environment("SLURM_NTASKS");
    return launch_by("PMIx", n, "PMIX_RANK");
  }
  return {};
}

std::shared_ptr<Ranks> Ranks::start(const Launch& launch, double timeout_seconds) {
  auto communicator = std::make_shared<Communicator>(start_mpi(), timeout_seconds);
  if (!launch.is_alone() && communicator->n_ranks() != launch.n_ranks) {
    throw UsageError(
        "start ranks", launch.launcher,
        fmt::format("{} ranks, as it says, in MPI, too", launch.n_ranks),
        fmt::format("{} (is it the launcher of this program's MPI?)", communicator->n_ranks()));
  }
  return std::make_shared<Ranks>(std::move(communicator));
}

Ranks::Ranks(std::shared_ptr<Communicator> communicator) : communicator_(std::move(communicator)) {}
Ranks::~Ranks() = default;

int Ranks::rank() const { return communicator_->rank(); }
int Ranks::n_ranks() const { return communicator_->n_ranks(); }
void Ranks::stop_waiting_when(const std::atomic<bool>* stop) {
  communicator_->stop_waiting_when(stop);
}
void Ranks::give_up(std::string_view why) noexcept { communicator_->give_up(why); }
void Ranks::finish() noexcept { communicator_->finish(); }
std::string Ranks::failure() const { return communicator_->failure(); }
bool Ranks::has_lost_leader() const { return communicator_->has_lost_leader(); }

void follow(const std::filesystem::path& path, const ModelOptions& options) {
  if (options.ranks == nullptr || options.ranks->leads()) {
    throw UsageError("follow", "ranks", "another rank than the first of several", "none, or that");
  }
  try {
    LoadOptions load = make_load_options(options);
    load.ranks = options.ranks->communicator();
    follow_model(path, load);
  } catch (const std::exception& error) {
    options.ranks->give_up(error.what());
    throw;
  }
}

}  // namespace outrider
