// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/tune_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/bench/bench_progress.h"
#include "apps/bench/bench_text.h"
#include "apps/cli/flag_values.h"
#include "apps/cli/help_format.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/terminal.h"
#include "apps/flags/model_flags.h"
#include "apps/flags/sampling_flags.h"
#include "apps/flags/text_flags.h"
#include "outrider/tune.h"

namespace outrider::cli {
namespace {

// How many of the tried sets to show.
constexpr std::size_t kShown = 10;

struct TuneLayersFlags {
  ModelFlags model;
  LayerSearchOptions options;
  bool json = false;
};

std::string to_json(const Model& model, const std::vector<SkippedLayers>& sets) {
  Json object = describe(model);
  object["sets"] = Json::array();
  for (const SkippedLayers& set : sets) {
    object["sets"].push_back({{"drafter", set.drafter()},
                              {"layers", set.layers},
                              {"acceptance", set.acceptance},
                              {"cost", set.cost},
                              {"length", set.length},
                              {"speedup", set.speedup}});
  }
  return dump(object);
}

std::string to_table(const Model& model, const LayerSearchOptions& options,
                     const std::vector<SkippedLayers>& sets) {
  std::string text = fmt::format(
      "{} drafting for itself, temperature {}; {} tried\n\n", one_line(model.path().string()),
      options.texts.sampling.temperature, counted(static_cast<std::int64_t>(sets.size()), "set"));
  const std::size_t n_shown = std::min(sets.size(), kShown);
  std::size_t width = 7;
  for (std::size_t i = 0; i < n_shown; ++i) width = std::max(width, sets[i].drafter().size());
  text += fmt::format("{:<{}}  acceptance   cost  length  expected speed-up\n", "drafter", width);
  for (std::size_t i = 0; i < n_shown; ++i) {
    const SkippedLayers& set = sets[i];
    text += fmt::format("{:<{}}  {:>10.3f}  {:>5.2f}  {:>6}  {:>16.2f}x\n", set.drafter(), width,
                        set.acceptance, set.cost, set.length, set.speedup);
  }
  if (sets.front().length == 0) return text + "\nNo draft of these is expected to pay here.\n";
  return text + fmt::format("\nUse the first as --drafter {} --tree chain:length={}\n",
                            sets.front().drafter(), sets.front().length);
}

int run(const TuneLayersFlags& flags) {
  Interrupt interrupt;
  const std::shared_ptr<const Model> model = load_model(flags.model, interrupt);
  std::vector<SkippedLayers> sets;
  {
    BenchProgress progress(interrupt);
    LayerSearchOptions options = flags.options;
    options.progress = [&progress](std::string_view step, double share) {
      progress.show(step, share);
    };
    sets = search_layers(model, options);
  }
  interrupt.throw_if_raised();
  Output output;
  output.write(flags.json ? to_json(*model, sets) : to_table(*model, flags.options, sets));
  output.check();
  return 0;
}

}  // namespace

CLI::App* add_tune_layers(CLI::App& tune, Run& run_command) {
  CLI::App* app =
      tune.add_subcommand("layers", "Find the layers that a target drafts best without");
  const auto flags = std::make_shared<TuneLayersFlags>();
  add_loading_flags(*app, flags->model);
  add_device_flag(*app, flags->model);

  LayerSearchOptions& options = flags->options;
  add_continued_texts(*app, options.texts, 1);
  add_integer(*app, "--trials", options.trials, 1,
              "Sets of layers to try (default: 128). Each is a pass over these texts; all sets "
              "where there are no more")
      ->group("Search");
  add_seed(*app, "--seed", options.seed,
           "Of the continuations and of which sets are tried (default: 0)")
      ->group("Search");
  app->add_flag("--json", flags->json, "All sets as one JSON object");
  show_usual(*app, {"--trials", "--seed", "--json"});
  app->footer(
      "Examples:\n"
      "  outrider tune layers --model SmolLM2-1.7B --weights int8 --text notes.txt\n"
      "  outrider tune layers --model SmolLM2-1.7B --text chats --temperature 0.8 --trials 500\n"
      "  outrider generate --model SmolLM2-1.7B --drafter layerskip:skip=7+11+12 \\\n"
      "      --tree chain:length=3 --prompt \"Once upon a time\"\n");
  run_command = [flags] { return run(*flags); };
  return app;
}

}  // namespace outrider::cli
