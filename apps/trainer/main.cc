// SPDX-License-Identifier: Apache-2.0
// outrider-train: the training commands. `outrider train lm ...` runs `outrider-train lm ...`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>
#include <vector>

#include "apps/cli/command_tree.h"
#include "apps/cli/entry.h"
#include "apps/cli/help_format.h"
#include "apps/cli/one_process.h"
#include "apps/cli/terminal.h"
#include "apps/cli/version.h"
#include "apps/trainer/blas_core.h"
#include "apps/trainer/heap.h"
#include "apps/trainer/train_commands.h"

namespace outrider::cli {
namespace {

int run_program(int argc, char** argv) {
  take_place_among_ranks();
  require_one_process("outrider-train");
  keep_heap();
  CLI::App program("Trains language models, drafters and the heads that draft for a target.",
                   "outrider-train");
  add_help(program);
  program.set_version_flag("--version", fmt::format("outrider {}", kVersion), "Print the version");
  program.footer(
      "Examples:\n"
      "  outrider train lm --text stories.txt --tokenizer stories260K --layers 2 --dim 64 "
      "--steps 2000 --out drafter\n"
      "  outrider train lm --help\n");

  std::vector<std::pair<CLI::App*, Run>> commands;
  for (const auto add : {add_train_lm, add_train_distill, add_train_eagle, add_train_dflash,
                         add_train_dspark, add_train_medusa, add_train_mtp, add_train_pard,
                         add_train_online, add_train_seq2seq, add_train_router}) {
    auto& [command, run] = commands.emplace_back();
    command = add(program, run);
  }

  // Called by `outrider completion` and `outrider man`.
  CLI::App* const describe =
      program.add_subcommand("describe", "Print all commands and flags as JSON")->group("");
  Output output;
  try {
    parse(program, argc, argv);
  } catch (const CLI::CallForHelp&) {
    return show_help(program, CLI::AppFormatMode::Normal);
  } catch (const CLI::CallForAllHelp&) {
    return show_help(program, CLI::AppFormatMode::All);
  } catch (const CLI::CallForVersion& version) {
    output.write(fmt::format("{}\n", version.what()));
    output.check();
    return 0;
  } catch (const CLI::ParseError& error) {
    return fail_usage(program, error);
  }
  for (const auto& [command, run] : commands) {
    if (command->parsed()) return run();
  }
  if (describe->parsed()) {
    output.write(json_text(describe_commands(program)));
    output.check();
    return 0;
  }
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const auto& [command, run] : commands) names.push_back(command->get_name());
  return fail(kExitUsage,
              fmt::format("[read flags] command: expected one of {}, got none (see outrider-train "
                          "--help)",
                          fmt::join(names, ", ")));
}

}  // namespace
}  // namespace outrider::cli

int main(int argc, char** argv) {
  outrider::cli::take_fitting_blas_core(argv);
  return outrider::cli::enter("outrider-train", argc, argv, outrider::cli::run_program);
}
