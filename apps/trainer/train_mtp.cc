// SPDX-License-Identifier: Apache-2.0
// outrider train mtp: multi-token prediction modules for a model that does not change.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <utility>

#include "apps/cli/flag_values.h"
#include "apps/cli/help_format.h"
#include "apps/trainer/head_flags.h"
#include "apps/trainer/train_commands.h"
#include "outrider/error.h"
#include "train/objectives/mtp.h"

namespace outrider::cli {
namespace {

struct MtpFlags {
  HeadFlags head;
  int modules = 1;
  bool alone = false;
};

int run_mtp(const MtpFlags& flags) {
  // If there is a model.safetensors, loaders ignore shards and their index.
  const std::filesystem::path out = flags.head.run.out;
  const char* other = flags.alone ? "model.safetensors.index.json" : "model.safetensors";
  if (std::filesystem::exists(out / other)) {
    throw UsageError("read flags", "out", "a directory that holds no model", out.string());
  }
  const train::HeadRun run = head_run_of(flags.head);
  train::RunSettings settings = settings_of(flags.head, run);
  settings.insert(settings.begin(),
                  {{"command", "mtp"}, {"modules", fmt::format("{}", flags.modules)}});
  // A run begun with a copy of the model cannot continue with modules alone.
  if (flags.alone) settings.emplace_back("alone", "yes");
  const auto objective = train::make_mtp({.run = run,
                                          .target_directory = flags.head.target,
                                          .n_modules = flags.modules,
                                          .alone = flags.alone});
  return run_head(*objective, flags.head, run, std::move(settings), 1);
}

}  // namespace

CLI::App* add_train_mtp(CLI::App& program, Run& run) {
  auto flags = std::make_shared<MtpFlags>();
  CLI::App* command = program.add_subcommand(
      "mtp", "Add multi-token prediction modules to a model: a chain of layers that predict on");
  constexpr const char* kModules = "Modules";
  add_integer(*command, "--modules", flags->modules, 1, "How many (default: 1)")->group(kModules);
  command
      ->add_flag("--alone", flags->alone, "Write the modules by themselves, for --drafter mtp:DIR")
      ->group(kModules);
  add_head_flags(*command, flags->head);
  show_usual(*command, {"--modules", "--alone"});
  command->footer(
      "--out becomes a copy of the target with the modules added, for --drafter mtp; with\n"
      "--alone it holds them by themselves. --export is their type.\n"
      "Examples:\n"
      "  outrider train mtp --target stories260K --text stories.txt --separator "
      "\"<|endoftext|>\" --modules 2 --steps 2000 --out stories260K-mtp\n"
      "  outrider train mtp ... --alone --out modules\n"
      "  outrider train mtp ... --resume\n");
  run = [flags] { return run_mtp(*flags); };
  return command;
}

}  // namespace outrider::cli
