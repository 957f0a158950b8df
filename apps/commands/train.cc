// SPDX-License-Identifier: Apache-2.0
// outrider train: two subcommands of this program, and those of outrider-train.
#include <fmt/format.h>

#include <iterator>
#include <memory>
#include <string>

#include "apps/commands.h"
#include "apps/commands/train_answers.h"
#include "apps/commands/train_tokenizer.h"
#include "apps/commands/trainer_program.h"
#include "outrider/error.h"

namespace outrider::cli {

CLI::App* add_train(CLI::App& program, Run& run_command) {
  CLI::App* app = program.add_subcommand("train", "Train a vocabulary, a drafter or a small model")
                      ->group("Commands");
  const auto run_tokenizer = std::make_shared<Run>();
  const CLI::App* tokenizer = add_train_tokenizer(*app, *run_tokenizer);
  const auto run_answers = std::make_shared<Run>();
  const CLI::App* answers = add_train_answers(*app, *run_answers);
  // For the list in the help: hand_over_to_trainer() has run before anything is parsed here.
  std::string names = "tokenizer, answers";
  for (const TrainerCommand& command : trainer_commands()) {
    app->add_subcommand(std::string(command.name), std::string(command.description))
        ->group("With the program outrider-train (scripts/install-deps train, then build)");
    fmt::format_to(std::back_inserter(names), ", {}", command.name);
  }
  app->footer(
      "Examples:\n"
      "  outrider train tokenizer --text stories.txt --vocabulary 4096 --out tokenizer\n"
      "  outrider train lm --text stories.txt --tokenizer tokenizer --layers 6 --dim 256 \\\n"
      "      --steps 2000 --out model\n"
      "  outrider train lm --help\n");
  run_command = [run_tokenizer, tokenizer, run_answers, answers, names] {
    if (tokenizer->parsed()) return (*run_tokenizer)();
    if (answers->parsed()) return (*run_answers)();
    throw UsageError("read flags", "train", "one of " + names, "none (see outrider train --help)");
  };
  return app;
}

}  // namespace outrider::cli
