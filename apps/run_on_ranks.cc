// SPDX-License-Identifier: Apache-2.0
#include "apps/run_on_ranks.h"

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <map>
#include <utility>

#include "apps/cli/entry.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/one_process.h"
#include "outrider/error.h"

namespace outrider::cli {
namespace {

struct RankedCommand {
  const ModelFlags* flags;
  std::function<void()> read;
};

std::map<const CLI::App*, RankedCommand>& ranked_commands() {
  static std::map<const CLI::App*, RankedCommand> commands;
  return commands;
}

std::shared_ptr<Ranks>& ranks_of_process() {
  static std::shared_ptr<Ranks> ranks;
  return ranks;
}

// For ranks other than 0.
std::atomic<bool> follower_signalled{false};
static_assert(std::atomic<bool>::is_always_lock_free);

// Ctrl-C reaches all processes of a terminal; mpirun and service managers send SIGTERM to all of
// them. During passes rank 0 ends its texts, and then the other ranks end with it. While they load,
// or wait for others that do, the signal ends them.
void note_signals_of_follower() {
  struct sigaction action = {};
  action.sa_handler = [](int) { follower_signalled.store(true); };
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction previous = {};
    ::sigaction(signal, nullptr, &previous);
    if (previous.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
  }
}

// Runs the command on rank 0, and tells the others when it ends.
int lead_ranks(const RankedCommand& command, const Run& run, const std::shared_ptr<Ranks>& ranks) {
  const auto end = [&ranks](std::string_view why) {
    ranks->give_up(why);
    ranks->finish();
  };
  ranks->stop_waiting_when(Interrupt::signal_flag());
  try {
    if (command.read) command.read();
    const int status = run();
    ranks->finish();
    return status;
  } catch (const Interrupted& error) {
    print_error(error.what());
    end(error.what());
    throw;
  } catch (const LostRank& error) {
    const bool is_interrupted = Interrupt::signal_flag()->load();
    // A launcher that forwarded the signal soon kills the remaining processes: the line must be
    // printed before the end.
    if (is_interrupted) print_error(error.what());
    end(error.what());
    if (!is_interrupted) throw;
    return kExitInterrupted;
  } catch (const std::exception& error) {
    end(error.what());
    throw;
  } catch (...) {
    end("interrupted");
    throw;
  }
}

int follow_ranks(const RankedCommand& command, const std::shared_ptr<Ranks>& ranks) {
  note_signals_of_follower();
  ranks->stop_waiting_when(&follower_signalled);
  try {
    if (command.read) command.read();
    ModelOptions options = command.flags->options;
    options.ranks = ranks;
    options.progress = [](double) {
      if (follower_signalled.load()) throw Interrupted();
    };
    follow(command.flags->model, options);
    ranks->finish();
    return 0;
  } catch (const std::exception& error) {
    const bool is_interrupted = follower_signalled.load();
    if (is_interrupted) print_error(error.what());
    ranks->give_up(error.what());
    const bool is_alone_with_it = ranks->has_lost_leader();
    ranks->finish();
    if (is_alone_with_it && is_interrupted) return kExitInterrupted;
    if (is_alone_with_it) throw;
    // The first rank reports the error. With another status than 0, mpirun might end it before
    // that.
    return 0;
  }
}

}  // namespace

void allow_ranks(CLI::App& command, ModelFlags& flags, std::function<void()> read) {
  command
      .add_option("--rank-timeout", flags.rank_timeout,
                  "Of several ranks (mpirun): seconds that one may be silent in a pass (default: "
                  "60)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.01, 86400.0))
      ->group("Model");
  ranked_commands()[&command] = {.flags = &flags, .read = std::move(read)};
}

std::shared_ptr<Ranks> ranks_in_use() { return ranks_of_process(); }

int run_as_launched(const CLI::App& command, const Run& run) {
  const Launch launch = detect_launch();
  if (launch.is_alone()) return run();
  const auto ranked = ranked_commands().find(&command);
  if (ranked == ranked_commands().end()) {
    require_one_process(fmt::format("outrider {}", command.get_name()));
  }
  const std::shared_ptr<Ranks> ranks = Ranks::start(launch, ranked->second.flags->rank_timeout);
  if (ranks->n_ranks() == 1) return run();
  ranks_of_process() = ranks;
  return ranks->leads() ? lead_ranks(ranked->second, run, ranks)
                        : follow_ranks(ranked->second, ranks);
}

}  // namespace outrider::cli
