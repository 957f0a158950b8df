// SPDX-License-Identifier: Apache-2.0
// What the rounds of a tuning say about each method.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "outrider/tune_drafters.h"

namespace outrider {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// The same rounds with another method as the base of comparison, and without plain decoding.
MethodComparison beside_first_drafter(const MethodComparison& comparison) {
  MethodComparison beside = comparison;
  beside.passes.reset();
  beside.options.methods.erase(beside.options.methods.begin());
  for (ComparedRound& round : beside.rounds) {
    if (!round.samples.empty()) round.samples.erase(round.samples.begin());
  }
  return beside;
}

double accepted_share(const MethodComparison& comparison, std::size_t method, double temperature) {
  double drafted = 0;
  double accepted = 0;
  for (const ComparedRound& round : comparison.rounds) {
    if (round.temperature != temperature || round.samples.empty()) continue;
    for (const DraftOutcome& outcome : round.samples[method].outcomes) {
      drafted += static_cast<double>(outcome.n) * outcome.nodes;
      accepted += static_cast<double>(outcome.n) * outcome.accepted;
    }
  }
  return drafted > 0 ? accepted / drafted : kUnknown;
}

bool differs(const MethodComparison& comparison, std::size_t method, double temperature) {
  if (!promises_same_text(comparison.options.methods[method], temperature)) return false;
  return std::any_of(comparison.rounds.begin(), comparison.rounds.end(),
                     [&](const ComparedRound& round) {
                       return round.temperature == temperature && !round.samples.empty() &&
                              round.samples[method].first_difference >= 0;
                     });
}

TunedMethod tuned(const MethodComparison& comparison, const MethodFigures& figures) {
  const SpeculationOptions& speculation = comparison.options.methods[figures.method].speculation;
  TunedMethod method;
  method.drafter = speculation.drafter;
  if (!speculation.adaptive) method.tree = speculation.tree.empty() ? "own" : speculation.tree;
  method.temperature = figures.temperature;
  method.n_prompts = figures.n_prompts;
  method.over_plain = figures.speedup;
  method.over_auto = {kUnknown, kUnknown, kUnknown};
  method.tau = figures.tau.value;
  method.accepted_share = accepted_share(comparison, figures.method, figures.temperature);
  method.differs = differs(comparison, figures.method, figures.temperature);
  return method;
}

// For all prompts, without plain decoding.
std::vector<TunedMethod> tuned_methods(const MethodComparison& comparison) {
  std::vector<TunedMethod> methods;
  for (const MethodFigures& figures : method_figures(comparison)) {
    if (figures.method == 0 || !figures.category.empty()) continue;
    methods.push_back(tuned(comparison, figures));
  }
  return methods;
}

}  // namespace

std::vector<TunedMethod> Tuning::methods() const {
  std::vector<TunedMethod> methods = tuned_methods(drafters);
  if (shapes) {
    std::map<std::pair<double, std::size_t>, Estimate> over_auto;
    for (const MethodFigures& figures : method_figures(beside_first_drafter(*shapes))) {
      if (!figures.category.empty()) continue;
      over_auto[{figures.temperature, figures.method + 1}] = figures.speedup;
    }
    for (const MethodFigures& figures : method_figures(*shapes)) {
      if (figures.method < 2 || !figures.category.empty()) continue;
      TunedMethod& method = methods.emplace_back(tuned(*shapes, figures));
      method.over_auto = over_auto.at({figures.temperature, figures.method});
    }
  }
  std::stable_sort(methods.begin(), methods.end(), [](const TunedMethod& a, const TunedMethod& b) {
    return a.temperature < b.temperature;
  });
  return methods;
}

std::vector<std::string> Tuning::problems() const {
  std::vector<std::string> problems = comparison_problems(drafters);
  if (shapes) {
    const std::vector<std::string> more = comparison_problems(*shapes);
    problems.insert(problems.end(), more.begin(), more.end());
  }
  return problems;
}

double Tuning::seconds_for(const TunedMethod& method, int n_prompts) const {
  const bool is_fixed = !method.tree.empty();
  if (is_fixed && !shapes) return kUnknown;
  const MethodComparison& comparison = is_fixed ? *shapes : drafters;
  const Half& half = is_fixed ? shapes_half : drafters_half;
  const auto n_rounds = static_cast<double>(
      std::count_if(comparison.rounds.begin(), comparison.rounds.end(),
                    [](const ComparedRound& round) { return !round.samples.empty(); }));
  const bool are_there =
      n_prompts > 0 && static_cast<std::size_t>(n_prompts) <= comparison.options.prompts.size();
  if (n_rounds == 0 || !are_there) return kUnknown;
  const double a_prompt =
      half.rounds / n_rounds * static_cast<double>(comparison.options.temperatures.size());
  return 2 * (half.begin + n_prompts * a_prompt);
}

}  // namespace outrider
