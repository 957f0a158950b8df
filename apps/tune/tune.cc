// SPDX-License-Identifier: Apache-2.0
// outrider tune: good settings, found by measuring.
#include <memory>
#include <vector>

#include "apps/commands.h"
#include "apps/tune/tune_command.h"
#include "apps/tune/tune_layers.h"
#include "apps/tune/tune_tree.h"
#include "outrider/error.h"

namespace outrider::cli {
namespace {

// Refuses flags before a command, which would be ignored.
void refuse_flags_before(const CLI::App& tune, const CLI::App& command) {
  for (const CLI::Option* option : tune.get_options()) {
    if (option->count() == 0) continue;
    throw UsageError("read flags", option->get_name(),
                     "flags behind the command " + command.get_name(), "one before it");
  }
}

}  // namespace

CLI::App* add_tune(CLI::App& program, Run& run_command) {
  CLI::App* app =
      program.add_subcommand("tune", "Find good settings by measuring: which drafter pays here");
  app->group("Commands");
  const auto run_drafters = std::make_shared<Run>();
  const auto run_tree = std::make_shared<Run>();
  const auto run_layers = std::make_shared<Run>();
  add_tune_drafters(*app, *run_drafters);
  const CLI::App* tree = add_tune_tree(*app, *run_tree);
  const CLI::App* layers = add_tune_layers(*app, *run_layers);
  app->footer(
      "Examples:\n"
      "  outrider tune --model SmolLM2-1.7B-Instruct --draft SmolLM2-135M-Instruct\n"
      "  outrider tune --model model.gguf --prompts question.jsonl --seconds 600 --json tune.json\n"
      "  outrider tune tree --model SmolLM2-1.7B --draft SmolLM2-135M --text notes.txt \\\n"
      "      --out tree.json\n"
      "  outrider tune layers --model SmolLM2-1.7B --text notes.txt\n");
  run_command = [app, run_drafters, run_tree, run_layers, tree, layers] {
    if (tree->parsed()) {
      refuse_flags_before(*app, *tree);
      return (*run_tree)();
    }
    if (layers->parsed()) {
      refuse_flags_before(*app, *layers);
      return (*run_layers)();
    }
    return (*run_drafters)();
  };
  return app;
}

}  // namespace outrider::cli
