// SPDX-License-Identifier: Apache-2.0
#include "apps/evaluation/eval_grid_flags.h"

#include <algorithm>

#include "apps/cli/flag_values.h"

namespace outrider::cli {

void add_grid_flags(CLI::App& app, GridFlags& flags, const char* group) {
  add_text(
      app, "--rules", flags.rules, "SPEC,...",
      "Rules, as --rule takes them. A rule without its parameter is run through a range of it; "
      "A|B in the place of a number stands for both; --teacher-forced takes neither typical "
      "nor bild, which judge whole drafts (default: " +
          flags.rules + ")")
      ->group(group);
  add_reals(app, "--alphas", flags.alphas, {-kInfinity, false, kInfinity, false, "finite numbers"},
            "alpha of every rule that takes one and does not say (default: each rule's own range)")
      ->group(group);
  add_reals(app, "--temperatures", flags.temperatures,
            {0, true, kInfinity, false, "numbers of 0 or more"}, "(default: 1)")
      ->group(group);
  add_reals(app, "--top-ps", flags.top_ps, {0, false, 1, true, "numbers in (0, 1]"},
            "Each with every temperature above 0 (default: 1)")
      ->group(group);
  add_integers(app, "--top-ks", flags.top_ks, 0, "Likewise; 0 keeps all (default: 0)")
      ->group(group);
  add_integers(app, "--lengths", flags.lengths, 1, "Lengths of drafts (default: 5)")->group(group);
}

namespace {

// In the order given.
template <class T>
std::vector<T> each_once(const std::vector<T>& values) {
  std::vector<T> once;
  for (const T value : values) {
    if (std::find(once.begin(), once.end(), value) == once.end()) once.push_back(value);
  }
  return once;
}

}  // namespace

std::vector<eval::RuleSetting> rules_of(const GridFlags& flags) {
  return eval::expand_rules(flags.rules, flags.alphas);
}

std::vector<int> lengths_of(const GridFlags& flags) { return each_once(flags.lengths); }

std::vector<SamplingParams> samplings_of(const GridFlags& flags) {
  std::vector<SamplingParams> samplings;
  for (const double temperature : each_once(flags.temperatures)) {
    if (temperature == 0) {
      samplings.push_back({.temperature = 0});
      continue;
    }
    for (const int top_k : each_once(flags.top_ks)) {
      for (const double top_p : each_once(flags.top_ps)) {
        samplings.push_back({.temperature = temperature, .top_k = top_k, .top_p = top_p});
      }
    }
  }
  return samplings;
}

}  // namespace outrider::cli
