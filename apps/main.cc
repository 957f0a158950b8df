// SPDX-License-Identifier: Apache-2.0
// outrider: the command line. Parses flags and runs one command.
#include <fmt/format.h>

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/cli/entry.h"
#include "apps/cli/help_format.h"
#include "apps/cli/one_process.h"
#include "apps/cli/terminal.h"
#include "apps/cli/version.h"
#include "apps/commands.h"
#include "apps/commands/trainer_program.h"
#include "apps/run_on_ranks.h"
#include "outrider/error.h"

namespace outrider::cli {
namespace {

int run_program(int argc, char** argv) {
  take_place_among_ranks();
  if (argc > 1 && std::string_view(argv[1]) == "train") require_one_process("outrider train");
  hand_over_to_trainer(argc, argv);
  CLI::App program(
      "Runs language models by speculative decoding. A drafter proposes tokens, and the target "
      "verifies many of them in one pass. By default the text is exactly the target's own.",
      "outrider");
  add_help(program);
  program.set_version_flag("--version", fmt::format("outrider {}", kVersion), "Print the version");
  program.footer(
      "Examples:\n"
      "  outrider generate --model SmolLM2-1.7B-Instruct --prompt \"Once upon a time\"\n"
      "  outrider generate --help\n");

  std::vector<std::pair<CLI::App*, Run>> commands;
  for (const auto add :
       {add_generate, add_chat, add_serve, add_drafters, add_rules, add_trees, add_template,
        add_tokenize, add_inspect, add_devices, add_quantize, add_datastore, add_bench, add_tune,
        add_eval, add_train, add_completion, add_man}) {
    auto& [command, run] = commands.emplace_back();
    command = add(program, run);
  }

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
    if (command->parsed()) return run_as_launched(*command, run);
  }
  return show_help(program, CLI::AppFormatMode::Normal);
}

}  // namespace
}  // namespace outrider::cli

int main(int argc, char** argv) {
  return outrider::cli::enter("outrider", argc, argv, outrider::cli::run_program);
}
