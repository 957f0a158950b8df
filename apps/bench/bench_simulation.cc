// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/bench_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "apps/bench/bench_progress.h"
#include "apps/bench/bench_text.h"
#include "apps/cli/flag_values.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/terminal.h"
#include "outrider/error.h"

namespace outrider::cli {
namespace {

Json to_json(const SimulatedTree& tree) {
  Json entry;
  entry["tree"] = tree.tree;
  entry["speedup"] = tree.speedup;
  entry["tau"] = tree.tau();
  entry["judged_acceptance"] = tree.judged_acceptance();
  entry["acceptance_rate"] = tree.acceptance_rate();
  put_seconds(entry, tree.seconds);
  entry["tokens_per_second"] = tree.tokens_per_second();
  entry["target_pass_seconds"] = tree.target_pass_seconds;
  entry["drafter_pass_seconds"] = tree.drafter_pass_seconds;
  entry["verify_seconds"] = tree.verify_seconds;
  entry["target_passes"] = tree.target_passes;
  entry["drafter_passes"] = tree.drafter_passes;
  entry["drafted"] = tree.drafted;
  entry["accepted"] = tree.accepted;
  entry["emitted"] = tree.emitted;
  return entry;
}

std::string to_json(const Simulation& simulation, const Model& model,
                    const SpeculationOptions& speculation, const SimulationOptions& options) {
  Json object = describe(model);
  object["drafter"] = speculation.drafter;
  object["simulated_acceptance"] = options.acceptance;
  object["seed"] = options.seed;
  object["context"] = options.context;
  object["max_tokens"] = options.max_tokens;
  object["rounds"] = options.rounds;
  Json plain;
  put_seconds(plain, simulation.plain_seconds);
  plain["tokens_per_second"] = simulation.plain_tokens_per_second;
  plain["target_pass_seconds"] = simulation.plain_pass_seconds;
  object["plain"] = std::move(plain);
  Json trees = Json::array();
  for (const SimulatedTree& tree : simulation.trees) trees.push_back(to_json(tree));
  object["trees"] = std::move(trees);
  object["fastest"] = simulation.trees[simulation.fastest].tree;
  return dump(object);
}

std::string to_table(const Simulation& simulation, const Model& model,
                     const SpeculationOptions& speculation, const SimulationOptions& options) {
  std::string text = describe_line(model, options.context);
  text += fmt::format("drafter {}, right with probability {}; medians of {} rounds, {} tokens\n\n",
                      speculation.drafter, options.acceptance, options.rounds, options.max_tokens);
  std::size_t width = 5;
  for (const SimulatedTree& tree : simulation.trees) width = std::max(width, tree.tree.size());
  text += fmt::format("{:<{}}  {:>8}  {:>6}  {:>8}  {:>8}  {:>11}  {:>12}  {:>9}\n", "tree", width,
                      "speed-up", "tau", "accepted", "tokens/s", "target pass", "drafter pass",
                      "verify");
  text += fmt::format("{:<{}}  {:>7.2f}x  {:>6.2f}  {:>8}  {:>8.2f}  {:>11}\n", "plain", width, 1.0,
                      1.0, "", simulation.plain_tokens_per_second,
                      show_duration(simulation.plain_pass_seconds));
  for (const SimulatedTree& tree : simulation.trees) {
    const bool is_fastest = &tree == &simulation.trees[simulation.fastest];
    text +=
        fmt::format("{:<{}}  {:>7.2f}x  {:>6.2f}  {:>8.3f}  {:>8.2f}  {:>11}  {:>12}  {:>9}{}\n",
                    tree.tree, width, tree.speedup, tree.tau(), tree.judged_acceptance(),
                    tree.tokens_per_second(), show_duration(tree.target_pass_seconds),
                    show_duration(tree.drafter_pass_seconds), show_duration(tree.verify_seconds),
                    is_fastest && simulation.trees.size() > 1 ? "  fastest" : "");
  }
  return text + "\nEvery text was plain decoding's to the last id.\n";
}

}  // namespace

void add_simulation_flags(CLI::App& app, SimulationFlags& flags) {
  constexpr const char* kGroup = "What drafting gains";
  SimulationOptions& options = flags.options;
  flags.chosen = add_real(app, "--simulate-acceptance", options.acceptance,
                          {.min = 0,
                           .min_included = true,
                           .max = 1,
                           .max_included = true,
                           .words = "a number in [0, 1]"},
                          "Time decoding where drafts are accepted at the rate X. The drafter's "
                          "passes are run, its tokens replaced by the target's own, each spoiled "
                          "with probability 1 - X; plain decoding is timed beside it")
                     ->group(kGroup);
  add_filled_texts(app, "--tree", flags.trees, "SPEC", "a chain (chain:length=K)",
                   "Shape of the drafts, a chain; give several to try several (default: "
                   "chain:length=5)")
      ->allow_extra_args(false)
      ->group(kGroup);
  add_integers(app, "--lengths", flags.lengths, 1, "Short for --tree chain:length=N of each")
      ->group(kGroup);
  add_integer(app, "--max-tokens", options.max_tokens, 2,
              "Tokens to decode; with --methods, of each answer (default: 128)")
      ->group(kGroup);
  add_seed(app, "--seed", options.seed, "Of what is spoiled, or of sampled texts (default: 0)")
      ->group(kGroup);
}

int run_simulation(const ModelFlags& model_flags, const SimulationFlags& flags, bool json) {
  SimulationOptions options = flags.options;
  std::vector<std::string> trees = flags.trees;
  for (const int length : flags.lengths) trees.push_back(fmt::format("chain:length={}", length));
  if (!trees.empty()) options.trees = std::move(trees);
  SpeculationOptions speculation = speculation_of(model_flags);
  if (speculation.drafter == "none") {
    throw UsageError("read flags", "--draft", "a drafter's model", "none");
  }
  check_simulation(speculation, options);

  Interrupt interrupt;
  const std::shared_ptr<const Model> model = load_model(model_flags, interrupt);
  Simulation simulation;
  {
    BenchProgress progress(interrupt);
    speculation.drafter_options.progress = [&progress](double) {
      progress.show("loading drafter", 0);
    };
    options.progress = [&progress](std::string_view step, double share) {
      progress.show(step, share);
    };
    simulation = simulate_acceptance(*model, speculation, options);
  }
  interrupt.throw_if_raised();
  Output output;
  output.write(json ? to_json(simulation, *model, speculation, options)
                    : to_table(simulation, *model, speculation, options));
  output.check();
  return 0;
}

}  // namespace outrider::cli
