// SPDX-License-Identifier: Apache-2.0
#include "apps/profile_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

#include "apps/cli/output_place.h"
#include "apps/cli/terminal.h"
#include "apps/run_on_ranks.h"
#include "outrider/error.h"
#include "outrider/method_report.h"

namespace outrider::cli {
namespace {

namespace fs = std::filesystem;

// Identifies a model's files: another model at the same path is a different one.
std::string state_of_model(const std::string& model) {
  std::vector<fs::path> files;
  add_files_of_model(model, files);
  std::sort(files.begin(), files.end());
  std::error_code ignored;
  std::string state;
  for (const fs::path& file : files) {
    const auto size = fs::file_size(file, ignored);
    const auto time = fs::last_write_time(file, ignored).time_since_epoch().count();
    state += fmt::format("{} {} {}\n", fs::weakly_canonical(file, ignored).string(), size, time);
  }
  return state;
}

fs::path cache_folder() {
  const auto from = [](const char* name) {
    const char* const value = std::getenv(name);
    return fs::path(value == nullptr ? "" : value);
  };
  if (const fs::path cache = from("XDG_CACHE_HOME"); cache.is_absolute()) return cache;
  const fs::path home = from("HOME");
  return home.is_absolute() ? home / ".cache" : fs::path();
}

bool plans_drafts(const ModelFlags& flags) {
  const SpeculationOptions speculation = speculation_of(flags);
  return speculation.adaptive && speculation.drafter != "none";
}

}  // namespace

ProfileFile::ProfileFile(const ModelFlags& flags) : ProfileFile(flags, plans_drafts(flags)) {}

ProfileFile::ProfileFile(const ModelFlags& flags, bool plans) : plans_(plans) {
  if (!plans_ || flags.profile == "none") return;
  is_named_ = !flags.profile.empty();
  if (is_named_) {
    path_ = flags.profile;
    return;
  }
  const fs::path folder = cache_folder();
  if (folder.empty()) return;
  std::string about = fmt::format(
      "{}\n{}{} {} {} {}{}\n", describe_machine().processor, state_of_model(flags.model),
      flags.options.weights, flags.options.kv, flags.options.threads, flags.options.kernels,
      flags.options.device.empty() ? "" : " on " + flags.options.device);
  // Passes over a network have other costs.
  if (const auto ranks = ranks_in_use()) about += fmt::format("{} ranks\n", ranks->n_ranks());
  // Serves as a name only: a collision or change just means that passes are measured again.
  const std::size_t name = std::hash<std::string>()(about);
  path_ = folder / "outrider" / "profiles" / fmt::format("{:016x}.json", name);
}

fs::path ProfileFile::place() const {
  std::error_code ignored;
  if (!path_.empty() && !is_named_) fs::create_directories(path_.parent_path(), ignored);
  return path_;
}

template <typename Learner>
void ProfileFile::prepare_any(Learner& learner) const {
  if (!plans_) return;
  std::error_code ignored;
  if (!path_.empty() && fs::exists(path_, ignored)) {
    try {
      learner.load_drafting_profile(path_);
      return;
    } catch (const Error& error) {
      fmt::print(stderr, "outrider: {}; costs of passes are measured anew\n",
                 one_line(error.what()));
    }
  }
  learner.measure_passes();
}

template <typename Learner>
void ProfileFile::save_any(const Learner& learner) const {
  if (!plans_ || path_.empty()) return;
  try {
    learner.save_drafting_profile(place());
  } catch (const Error& error) {
    // A cache that cannot be written is ignored; for a requested file it is an error.
    if (is_named_) fmt::print(stderr, "outrider: {}\n", one_line(error.what()));
  }
}

void ProfileFile::prepare(Generator& generator) const { prepare_any(generator); }
void ProfileFile::prepare(Batch& batch) const { prepare_any(batch); }
void ProfileFile::save(const Generator& generator) const { save_any(generator); }
void ProfileFile::save(const Batch& batch) const { save_any(batch); }

}  // namespace outrider::cli
