// SPDX-License-Identifier: Apache-2.0
// Compares drafters with plain decoding within a time limit.
#include "outrider/tune_drafters.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "outrider/error.h"
#include "speculate/registry/drafter_registry.h"
#include "speculate/tree_shapes/tree_shape.h"

namespace outrider {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kOperation = "tune drafters";

// Fixed shapes besides planned drafts: shorter than the default length (kDefaultDraftLength), about
// that, and longer.
constexpr std::string_view kChains[] = {"chain:length=2", "chain:length=4", "chain:length=8"};
// Two choices at the first two levels, where drafts end most often: ten nodes. `outrider tune tree`
// finds the best one.
constexpr const char* kTree = "widths:2,2,1";
constexpr const char* kOwnTree = "own";

// A single prompt has no interval.
constexpr std::size_t kMinPrompts = 2;
// More repeats do not change a median.
constexpr int kMaxRepeats = 1000;
constexpr int kPassRounds = 3;

struct Cancelled {};

// After the context, the model must have space for the widest pass.
PassCosts measure_costs(const Model& model, MethodComparison& comparison,
                        const MeasureProgress& progress) {
  constexpr int kAllRows[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};
  const int room = model.summary().context_length;
  PassOptions options;
  options.read_bytes = 1;  // the minimum: memory bandwidth is not used
  options.rounds = kPassRounds;
  options.context =
      std::max(0, std::min(typical_context(model, comparison.options), room - kAllRows[9]));
  options.rows.clear();
  for (const int rows : kAllRows) {
    if (rows <= room - options.context) options.rows.push_back(rows);
  }
  options.progress = progress;
  comparison.pass_context = options.context;
  return measure_passes(model, options);
}

ComparedMethod planned(const std::string& drafter, const ModelOptions& drafter_options) {
  ComparedMethod method{.name = drafter, .speculation = {}};
  method.speculation.drafter = drafter;
  method.speculation.drafter_options = drafter_options;
  method.speculation.adaptive = true;
  // Draft depths depend on the clock; with "coupled", texts equal plain decoding's nevertheless.
  method.speculation.verify = "coupled";
  return method;
}

ComparedMethod fixed(const std::string& drafter, std::string_view tree,
                     const ModelOptions& drafter_options) {
  ComparedMethod method{.name = fmt::format("{}@{}", drafter, tree), .speculation = {}};
  method.speculation.drafter = drafter;
  method.speculation.drafter_options = drafter_options;
  if (tree != kOwnTree) method.speculation.tree = tree;
  return method;
}

std::vector<ComparedMethod> fixed_methods(const std::string& drafter, const ModelOptions& options) {
  std::vector<ComparedMethod> methods;
  for (const std::string_view chain : kChains) methods.push_back(fixed(drafter, chain, options));
  const DrafterPlan plan = read_drafter(drafter);
  const std::string kind = drafter.substr(0, drafter.find(':'));
  if (!plan.shape->is_chain()) {
    methods.push_back(fixed(drafter, kOwnTree, options));
  } else if (plan.traits.has_draft_prob && (kind == "model" || kind == "layerskip")) {
    methods.push_back(fixed(drafter, kTree, options));
  }
  return methods;
}

// A part of the time, and the measurements in it. Not thread-safe.
class Tuner {
 public:
  Tuner(const std::shared_ptr<const Model>& model, const TuneOptions& options)
      : model_(model), options_(&options), begun_(Clock::now()) {}

  Tuning run() {
    Tuning tuning;
    try {
      measure(tuning);
    } catch (const Cancelled&) {
      // Called between rounds: results so far are kept.
    }
    tuning.cancelled = is_cancelled();
    tuning.seconds = seconds();
    return tuning;
  }

 private:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begun_).count(); }
  bool is_cancelled() const { return options_->cancel != nullptr && options_->cancel->load(); }
  void step(std::string_view what) const {
    const double share = std::min(seconds() / options_->seconds, 1.0);
    if (options_->progress) options_->progress(what, share);
  }

  void measure(Tuning& tuning) {
    CompareOptions compare;
    compare.methods.push_back({.name = "plain", .speculation = {}});
    compare.prompts = options_->prompts.empty() ? tuning_prompts(*model_) : options_->prompts;
    compare.temperatures = options_->temperatures;
    compare.max_tokens = options_->max_tokens;
    compare.seed = options_->seed;
    compare.raw = options_->raw;
    for (const std::string& drafter : options_->drafters) {
      step("loading " + drafter);
      if (is_cancelled()) throw Cancelled();
      ComparedMethod method = planned(drafter, options_->drafter_options);
      try {
        const Generator unused(model_, method.speculation);
        compare.methods.push_back(std::move(method));
      } catch (const Error& error) {
        tuning.left_out.push_back(fmt::format("{}: {}", drafter, error.what()));
      }
    }
    if (compare.methods.size() == 1) {
      throw Error(kOperation, "drafters", "one that loads", tuning.left_out.front());
    }
    tuning.drafters = describe_comparison(*model_, compare, options_->version);
    tuning.drafters.passes =
        measure_costs(*model_, tuning.drafters, [this](std::string_view what, double) {
          step(fmt::format("what passes cost, {}", what));
          if (is_cancelled()) throw Cancelled();
        });
    run_rounds(tuning, tuning.drafters, options_->seconds / 2);
    tuning.drafters_half = half_of(tuning.drafters, 0);
    if (is_cancelled()) return;

    const std::string best = best_of(tuning);
    if (best.empty()) return;
    compare.methods.resize(1);
    compare.methods.push_back(planned(best, options_->drafter_options));
    for (ComparedMethod& method : fixed_methods(best, options_->drafter_options)) {
      compare.methods.push_back(std::move(method));
    }
    tuning.shapes = describe_comparison(*model_, compare, options_->version);
    const double begun = seconds();
    run_rounds(tuning, *tuning.shapes, options_->seconds);
    tuning.shapes_half = half_of(*tuning.shapes, begun);
  }

  // Until that many seconds have passed since the start.
  void run_rounds(Tuning& tuning, MethodComparison& comparison, double until_seconds) {
    CompareOptions options = comparison.options;
    std::set<std::size_t> unfit;  // prompts that cannot be measured
    std::size_t n_measured = 0;
    const std::size_t least =
        std::min(kMinPrompts, options.prompts.size()) * options.temperatures.size();
    options.repeats = kMaxRepeats;
    options.cancel = options_->cancel;
    options.is_known = [&unfit](std::size_t prompt, double, int) { return unfit.contains(prompt); };
    options.goes_on = [&] { return n_measured < least || seconds() < until_seconds; };
    options.progress = [this](std::string_view what, double) { step(what); };
    options.on_round = [&](const ComparedRound& round) {
      if (round.samples.empty()) {
        unfit.insert(round.prompt);
      } else {
        ++n_measured;
      }
      comparison.rounds.push_back(round);
    };
    options.on_begin = [&](std::size_t method, Generator& generator) {
      // Loads what the first half has learnt.
      if (!options.methods[method].speculation.adaptive || !tuning.profile_written) return;
      try {
        generator.load_drafting_profile(options_->profile);
      } catch (const Error&) {
        // Another program has replaced it: the passes are measured again.
      }
    };
    options.on_end = [&](std::size_t method, Generator& generator) {
      if (!options.methods[method].speculation.adaptive || options_->profile.empty()) return;
      try {
        generator.save_drafting_profile(options_->profile);
        tuning.profile_written = true;
      } catch (const Error& error) {
        tuning.profile_problem = error.what();
      }
    };
    compare_methods(model_, options);
    comparison.options.repeats = 1;
    for (const ComparedRound& round : comparison.rounds) {
      comparison.options.repeats = std::max(comparison.options.repeats, round.repeat + 1);
    }
  }

  Tuning::Half half_of(const MethodComparison& comparison, double begun) const {
    Tuning::Half half;
    for (const ComparedRound& round : comparison.rounds) {
      for (const MethodSample& sample : round.samples) half.rounds += sample.request_seconds;
    }
    half.begin = seconds() - begun - half.rounds;
    return half;
  }

  // The drafter with the largest product of speed-ups; empty if nothing was measured.
  static std::string best_of(const Tuning& tuning) {
    std::string best;
    double most = -std::numeric_limits<double>::infinity();
    const std::vector<TunedMethod> methods = tuning.methods();
    for (const TunedMethod& first : methods) {
      double sum = 0;
      for (const TunedMethod& method : methods) {
        if (method.drafter == first.drafter) sum += std::log(method.over_plain.value);
      }
      if (!(sum > most)) continue;
      most = sum;
      best = first.drafter;
    }
    return best;
  }

  std::shared_ptr<const Model> model_;
  const TuneOptions* options_;
  Clock::time_point begun_;
};

}  // namespace

void check_tuning(const TuneOptions& options) {
  const auto require = [](bool holds, const char* what, const char* expected,
                          const std::string& got) {
    if (!holds) throw UsageError(kOperation, what, expected, got);
  };
  require(!options.drafters.empty(), "drafters", "at least one", "none");
  // Written so that NaN is refused.
  require(options.seconds > 0 && std::isfinite(options.seconds), "seconds", "more than 0",
          fmt::format("{}", options.seconds));
  CompareOptions compare;
  compare.methods.push_back({.name = "plain", .speculation = {}});
  std::set<std::string> known;
  for (const std::string& drafter : options.drafters) {
    require(drafter != "none", "drafters", "drafters that draft", drafter);
    require(known.insert(drafter).second, "drafters", "each once", drafter + " twice");
    compare.methods.push_back(planned(drafter, options.drafter_options));
    for (ComparedMethod& method : fixed_methods(drafter, options.drafter_options)) {
      compare.methods.push_back(std::move(method));
    }
  }
  // The model always has some of its own.
  compare.prompts.resize(1);
  compare.temperatures = options.temperatures;
  compare.max_tokens = options.max_tokens;
  check_comparison(compare);
}

Tuning tune_drafters(const std::shared_ptr<const Model>& model, const TuneOptions& options) {
  check_tuning(options);
  return Tuner(model, options).run();
}

}  // namespace outrider
