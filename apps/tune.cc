// outrider tune: good settings, found by measuring.
#include <memory>

#include "commands.h"
#include "outrider/error.h"
#include "tune_layers.h"
#include "tune_tree.h"

namespace outrider::cli {

CLI::App* add_tune(CLI::App& program, Run& run_command) {
  CLI::App* app =
      program.add_subcommand("tune", "Find good settings by measuring")->group("Commands");
  const auto run_tree = std::make_shared<Run>();
  const auto run_layers = std::make_shared<Run>();
  const CLI::App* tree = add_tune_tree(*app, *run_tree);
  const CLI::App* layers = add_tune_layers(*app, *run_layers);
  app->footer(
      "Examples:\n"
      "  outrider tune tree --model SmolLM2-1.7B --draft SmolLM2-135M --text notes.txt \\\n"
      "      --out tree.json\n"
      "  outrider tune layers --model SmolLM2-1.7B --text notes.txt\n");
  run_command = [run_tree, run_layers, tree, layers] {
    if (tree->parsed()) return (*run_tree)();
    if (layers->parsed()) return (*run_layers)();
    throw UsageError("read flags", "tune", "tree or layers", "neither (see outrider tune --help)");
  };
  return app;
}

}  // namespace outrider::cli
