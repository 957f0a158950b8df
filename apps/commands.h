// SPDX-License-Identifier: Apache-2.0
// The subcommands of `outrider`, one source file each (drafters, rules and trees:
// spec_commands.cc).
#ifndef OUTRIDER_APPS_COMMANDS_H_
#define OUTRIDER_APPS_COMMANDS_H_

#include <CLI/CLI.hpp>
#include <functional>

namespace outrider::cli {

// Runs a command whose flags have been parsed; returns the exit status. Throws the library's
// errors, UsageError, OutputClosed or Interrupted; main turns them into one line and a status.
using Run = std::function<int()>;

// Each adds its subcommand to `program`, and sets `run` if that subcommand is chosen.
CLI::App* add_generate(CLI::App& program, Run& run);
CLI::App* add_chat(CLI::App& program, Run& run);
CLI::App* add_serve(CLI::App& program, Run& run);
CLI::App* add_template(CLI::App& program, Run& run);
CLI::App* add_tokenize(CLI::App& program, Run& run);
CLI::App* add_inspect(CLI::App& program, Run& run);
CLI::App* add_devices(CLI::App& program, Run& run);
CLI::App* add_drafters(CLI::App& program, Run& run);
CLI::App* add_rules(CLI::App& program, Run& run);
CLI::App* add_trees(CLI::App& program, Run& run);
CLI::App* add_quantize(CLI::App& program, Run& run);
CLI::App* add_datastore(CLI::App& program, Run& run);
CLI::App* add_bench(CLI::App& program, Run& run);
CLI::App* add_tune(CLI::App& program, Run& run);
CLI::App* add_eval(CLI::App& program, Run& run);
CLI::App* add_train(CLI::App& program, Run& run);
CLI::App* add_completion(CLI::App& program, Run& run);
CLI::App* add_man(CLI::App& program, Run& run);  // hidden from the help: for packages

inline constexpr int kExitError = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;  // 128 + SIGINT, as shells report it

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_COMMANDS_H_
