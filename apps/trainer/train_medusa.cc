// SPDX-License-Identifier: Apache-2.0
// outrider train medusa: heads on the target's last feature, each for a later token.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "apps/cli/flag_values.h"
#include "apps/cli/help_format.h"
#include "apps/trainer/head_flags.h"
#include "apps/trainer/train_commands.h"
#include "train/objectives/medusa.h"

namespace outrider::cli {
namespace {

struct MedusaFlags {
  HeadFlags head;
  int heads = 4;
  std::string lm_head = "own";
};

int run_medusa(const MedusaFlags& flags) {
  const train::HeadRun run = head_run_of(flags.head);
  train::RunSettings settings = settings_of(flags.head, run);
  settings.insert(settings.begin(), {{"command", "medusa"},
                                     {"heads", fmt::format("{}", flags.heads)},
                                     {"lm-head", flags.lm_head}});
  const auto objective = train::make_medusa(
      {.run = run, .n_heads = flags.heads, .own_lm_head = flags.lm_head == "own"});
  return run_head(*objective, flags.head, run, std::move(settings), 1);
}

}  // namespace

CLI::App* add_train_medusa(CLI::App& program, Run& run) {
  auto flags = std::make_shared<MedusaFlags>();
  flags->head.run.weight_decay = 0;  // as in the public recipe
  CLI::App* command = program.add_subcommand(
      "medusa", "Train Medusa heads: each predicts a token further on from the last feature");
  constexpr const char* kHead = "Heads";
  add_integer(*command, "--heads", flags->heads, 1, "How many (default: 4)")->group(kHead);
  add_choice(*command, "--lm-head", flags->lm_head, {"own", "shared"},
             "One output matrix a head, or the target's for all (default: own). The own ones begin "
             "as the target's")
      ->group(kHead);
  add_head_flags(*command, flags->head);
  show_usual(*command, {"--heads", "--lm-head"});
  command->footer(
      "Examples:\n"
      "  outrider train medusa --target stories260K --text stories.txt --separator "
      "\"<|endoftext|>\" --heads 3 --steps 2000 --out heads\n"
      "  outrider train medusa ... --lm-head shared --data generated\n");
  run = [flags] { return run_medusa(*flags); };
  return command;
}

}  // namespace outrider::cli
