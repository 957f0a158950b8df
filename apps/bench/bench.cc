// SPDX-License-Identifier: Apache-2.0
// outrider bench: how fast a model runs here, and what drafting can gain.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory>
#include <string>

#include "apps/bench/bench_methods.h"
#include "apps/bench/bench_passes.h"
#include "apps/bench/bench_plan.h"
#include "apps/bench/bench_simulation.h"
#include "apps/cli/flag_values.h"
#include "apps/cli/help_format.h"
#include "apps/commands.h"
#include "apps/flags/model_flags.h"
#include "apps/run_on_ranks.h"
#include "outrider/error.h"

namespace outrider::cli {
namespace {

struct BenchFlags {
  ModelFlags model;
  PassesFlags passes;
  SimulationFlags simulation;
  MethodsFlags methods;
  PlanFlags plan;
  std::string weights;  // any type with --plan, otherwise a format in which weights can be held
  int context = 0;
  int rounds = 5;
  CLI::Option* json = nullptr;
  std::string json_file;  // empty: standard output
};

// --json, or --json FILE. CLI11 gives "true" for a missing value; a file of that name is ./true.
CLI::Option* add_json(CLI::App& app, std::string& file) {
  return app
      .add_option_function<std::string>(
          "--json", [&file](const std::string& value) { file = value == "true" ? "" : value; },
          "The figures as one JSON object. With --methods, FILE: there, beside a file of rounds "
          "(FILE.rounds.jsonl) from which a run that was cut off goes on")
      ->expected(0, 1)
      ->type_name("[FILE]");
}

// Another --weights: with --plan it may name types that cannot be held here.
void take_any_weights(CLI::App& app, std::string& weights) {
  const CLI::Option* const held = app.get_option("--weights");
  const std::string placeholder = held->get_type_name();
  const std::string description = held->get_description();
  const std::string group = held->get_group();
  app.remove_option(app.get_option("--weights"));
  add_filled_text(app, "--weights", weights, placeholder, "a type of weights", description)
      ->group(group);
}

// Refuses flags that the chosen measurement does not use.
void refuse(const CLI::App& app, const std::string& way, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (app.get_option(name)->count() == 0) continue;
    throw UsageError("read flags", name, "no such flag with " + way, name);
  }
}

// The requested measurement.
enum class Measurement { passes, simulation, methods, plan };
Measurement chosen_measurement(const BenchFlags& flags) {
  const bool simulates = flags.simulation.chosen->count() > 0;
  const bool compares = flags.methods.chosen->count() > 0;
  const int n_chosen = (flags.passes.chosen ? 1 : 0) + (simulates ? 1 : 0) + (compares ? 1 : 0) +
                       (flags.plan.chosen ? 1 : 0);
  if (n_chosen != 1) {
    throw UsageError("read flags", "bench",
                     "one of --passes, --simulate-acceptance, --methods, --plan",
                     n_chosen == 0 ? "none (see outrider bench --help)" : "several");
  }
  if (flags.plan.chosen) return Measurement::plan;
  if (simulates) return Measurement::simulation;
  return compares ? Measurement::methods : Measurement::passes;
}

// Measurements that run a model need its name, and hold its weights in a format with kernels.
void take_model_flags(BenchFlags& flags) {
  constexpr std::array kHeld = {"f32", "bf16", "int8", "int4"};
  if (flags.model.model.empty()) {
    throw UsageError("read flags", "--model", "a model's path", "none");
  }
  if (!flags.weights.empty() &&
      std::find(kHeld.begin(), kHeld.end(), flags.weights) == kHeld.end()) {
    throw UsageError("read flags", "--weights", fmt::format("one of {}", fmt::join(kHeld, ", ")),
                     flags.weights);
  }
  flags.model.options.weights = flags.weights;
  const std::vector<std::string>& devices = flags.plan.devices;  // with --plan, predefined devices
  if (flags.plan.chosen || devices.empty()) return;
  if (devices.size() > 1) {
    throw UsageError("read flags", "--device", "one device, where passes run", devices[1]);
  }
  flags.model.options.device = devices.front();
}

int run_on_paper(const CLI::App& app, BenchFlags& flags) {
  constexpr const char* kWay = "--plan";
  refuse(app, kWay,
         {"--nodes", "--prefill", "--lengths", "--max-tokens", "--seed", "--drafter", "--draft",
          "--prompts", "--temperatures", "--limit", "--raw", "--csv", "--html"});
  const bool json = flags.json->count() > 0;
  const bool says_context = app.get_option("--context")->count() > 0;
  if (!flags.plan.checks) {
    refuse(app, kWay,
           {"--model", "--kv", "--kv-memory", "--experts", "--experts-memory", "--threads",
            "--rank-timeout", "--rows", "--repeat"});
    return run_plan(flags.plan, {.weights = flags.weights,
                                 .trees = flags.simulation.trees,
                                 .context = flags.context,
                                 .says_context = says_context,
                                 .json = json});
  }
  refuse(app, "--plan --check", {"--model-shape", "--device", "--acceptance", "--batch", "--tree"});
  take_model_flags(flags);
  PlanCheckRun run;
  if (app.get_option("--rows")->count() > 0) run.rows = flags.passes.options.rows;
  if (says_context) run.contexts = {0, flags.context};
  run.rounds = flags.rounds;
  run.json = json;
  return run_plan_check(flags.model, run);
}

int run_bench(const CLI::App& app, BenchFlags& flags) {
  const bool json = flags.json->count() > 0;
  const Measurement measurement = chosen_measurement(flags);
  const auto refuse_file = [&](const std::string& way) {
    if (flags.json_file.empty()) return;
    throw UsageError("read flags", "--json", "no file with " + way, flags.json_file);
  };
  if (measurement == Measurement::plan) {
    refuse_file("--plan");
    return run_on_paper(app, flags);
  }
  const char* const way = measurement == Measurement::passes       ? "--passes"
                          : measurement == Measurement::simulation ? "--simulate-acceptance"
                                                                   : "--methods";
  refuse(app, way, {"--check", "--model-shape", "--acceptance", "--batch"});
  take_model_flags(flags);
  switch (measurement) {
    case Measurement::passes:
      refuse(app, "--passes",
             {"--tree", "--lengths", "--max-tokens", "--seed", "--drafter", "--draft", "--prompts",
              "--temperatures", "--limit", "--raw", "--csv", "--html"});
      refuse_file("--passes");
      flags.passes.options.context = flags.context;
      flags.passes.options.rounds = flags.rounds;
      return run_passes(flags.model, flags.passes, json);
    case Measurement::simulation:
      refuse(app, "--simulate-acceptance",
             {"--rows", "--nodes", "--prefill", "--prompts", "--temperatures", "--limit", "--raw",
              "--csv", "--html"});
      refuse_file("--simulate-acceptance");
      flags.simulation.options.context = flags.context;
      flags.simulation.options.rounds = flags.rounds;
      return run_simulation(flags.model, flags.simulation, json);
    case Measurement::methods:
    case Measurement::plan:
      break;
  }
  refuse(app, "--methods",
         {"--rows", "--nodes", "--prefill", "--context", "--tree", "--lengths", "--drafter",
          "--draft"});
  const bool says_repeats = app.get_option("--repeat")->count() > 0;
  return run_methods(flags.model, flags.methods,
                     {.max_tokens = flags.simulation.options.max_tokens,
                      .repeats = says_repeats ? flags.rounds : 1,
                      .seed = flags.simulation.options.seed,
                      .json = json,
                      .json_file = flags.json_file});
}

}  // namespace

CLI::App* add_bench(CLI::App& program, Run& run_command) {
  CLI::App* app = program.add_subcommand("bench", "Measure what passes cost and drafting gains")
                      ->group("Commands");
  const auto flags = std::make_shared<BenchFlags>();
  add_loading_flags(*app, flags->model);
  app->get_option("--model")->required(false);
  take_any_weights(*app, flags->weights);
  add_passes_flags(*app, flags->passes);
  add_simulation_flags(*app, flags->simulation);
  add_drafter_flags(*app, flags->model);
  add_methods_flags(*app, flags->methods);
  add_plan_flags(*app, flags->plan);

  constexpr const char* kShared = "Several of these";
  add_integer(*app, "--context", flags->context, 0,
              "Tokens the model has read before, of no meaning (default: 0)")
      ->group(kShared);
  add_integer(*app, "--repeat", flags->rounds, 1,
              "Rounds of measurements (default: 5; with --methods: 1). All that is compared is "
              "measured in turn in each; medians count")
      ->group(kShared);
  flags->json = add_json(*app, flags->json_file)->group(kShared);
  show_usual(*app,
             {"--weights", "--passes", "--rows", "--simulate-acceptance", "--methods", "--prompts",
              "--temperatures", "--html", "--plan", "--model-shape", "--device", "--json"});
  app->footer(
      "Examples:\n"
      "  outrider bench --passes --model model.gguf --rows 1,16 --context 4096 --prefill 512 "
      "--json\n"
      "  outrider bench --simulate-acceptance 0.8 --model SmolLM2-1.7B --draft SmolLM2-135M \\\n"
      "      --weights int8 --lengths 2,4,6,8\n"
      "  outrider bench --methods model:SmolLM2-135M-Instruct,suffix@chain:length=8 \\\n"
      "      --model SmolLM2-1.7B-Instruct --prompts question.jsonl --limit 60 --temperatures 0,1 "
      "\\\n"
      "      --json methods.json --html methods.html\n"
      "  outrider bench --plan --model-shape llama-70b,llama-1b --device h200,l4 --weights q4_k\n");

  allow_ranks(*app, flags->model, [flags] {
    if (chosen_measurement(*flags) == Measurement::plan) {
      throw UsageError("read flags", "--plan", "one process (it runs no model's passes)",
                       "several ranks");
    }
    take_model_flags(*flags);
  });
  run_command = [flags, app] { return run_bench(*app, *flags); };
  return app;
}

}  // namespace outrider::cli
