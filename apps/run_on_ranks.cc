#include "run_on_ranks.h"

#include <fmt/format.h>

#include <csignal>
#include <map>
#include <utility>

#include "entry.h"
#include "interrupt.h"
#include "one_process.h"
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

// Runs the command on the first rank, and tells the other ranks when it ends.
int lead_ranks(const RankedCommand& command, const Run& run, const std::shared_ptr<Ranks>& ranks) {
  const auto end = [&ranks](std::string_view why) {
    ranks->give_up(why);
    ranks->finish();
  };
  try {
    if (command.read) command.read();
    const int status = run();
    ranks->finish();
    return status;
  } catch (const std::exception& error) {
    end(error.what());
    throw;
  } catch (...) {
    end("interrupted");
    throw;
  }
}

int follow_ranks(const RankedCommand& command, const std::shared_ptr<Ranks>& ranks) {
  // Ctrl-C reaches all processes of a terminal; mpirun and service managers send SIGTERM to all.
  // The first rank finishes its texts, for which it needs the others; then these end with it.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_IGN);
  try {
    if (command.read) command.read();
    ModelOptions options = command.flags->options;
    options.ranks = ranks;
    follow(command.flags->model, options);
    ranks->finish();
    return 0;
  } catch (const std::exception& error) {
    ranks->give_up(error.what());
    const bool is_alone_with_it = ranks->has_lost_leader();
    ranks->finish();
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
