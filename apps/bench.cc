// outrider bench: how fast a model runs here, and what drafting can gain.
#include <initializer_list>
#include <memory>
#include <string>

#include "bench_passes.h"
#include "bench_simulation.h"
#include "commands.h"
#include "flag_values.h"
#include "model_flags.h"
#include "outrider/error.h"

namespace outrider::cli {
namespace {

struct BenchFlags {
  ModelFlags model;
  PassesFlags passes;
  SimulationFlags simulation;
  int context = 0;
  int rounds = 5;
  bool json = false;
};

// A flag that the chosen measurement does not look at is a mistake, not to be passed over.
void refuse(const CLI::App& app, const std::string& way, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (app.get_option(name)->count() == 0) continue;
    throw UsageError("read flags", name, "no such flag with " + way, name);
  }
}

}  // namespace

CLI::App* add_bench(CLI::App& program, Run& run_command) {
  CLI::App* app = program.add_subcommand("bench", "Measure what passes cost and drafting gains")
                      ->group("Commands");
  const auto flags = std::make_shared<BenchFlags>();
  add_loading_flags(*app, flags->model);
  add_passes_flags(*app, flags->passes);
  add_simulation_flags(*app, flags->simulation);
  add_drafter_flags(*app, flags->model);

  constexpr const char* kBoth = "Both";
  add_integer(*app, "--context", flags->context, 0,
              "Tokens the model has read before, of no meaning (default: 0)")
      ->group(kBoth);
  add_integer(*app, "--repeat", flags->rounds, 1,
              "Rounds: all that is compared is measured in turn in each; medians count "
              "(default: 5)")
      ->group(kBoth);
  app->add_flag("--json", flags->json, "The figures as one JSON object")->group(kBoth);
  app->footer(
      "Examples:\n"
      "  outrider bench --passes --model SmolLM2-1.7B --weights int8\n"
      "  outrider bench --passes --model model.gguf --rows 1,16 --context 4096 --prefill 512 "
      "--json\n"
      "  outrider bench --simulate-acceptance 0.8 --model SmolLM2-1.7B --draft SmolLM2-135M \\\n"
      "      --weights int8 --lengths 2,4,6,8\n");

  run_command = [flags, app] {
    const bool simulates = flags->simulation.chosen->count() > 0;
    if (flags->passes.chosen == simulates) {
      throw UsageError("read flags", "bench", "one of --passes, --simulate-acceptance",
                       simulates ? "both" : "neither (see outrider bench --help)");
    }
    if (simulates) {
      refuse(*app, "--simulate-acceptance", {"--rows", "--nodes", "--prefill"});
      flags->simulation.options.context = flags->context;
      flags->simulation.options.rounds = flags->rounds;
      return run_simulation(flags->model, flags->simulation, flags->json);
    }
    refuse(*app, "--passes",
           {"--tree", "--lengths", "--max-tokens", "--seed", "--drafter", "--draft"});
    flags->passes.options.context = flags->context;
    flags->passes.options.rounds = flags->rounds;
    return run_passes(flags->model, flags->passes, flags->json);
  };
  return app;
}

}  // namespace outrider::cli
