// SPDX-License-Identifier: Apache-2.0
#include "measure/comparison/method_bounds.h"

#include <utility>
#include <vector>

namespace outrider {

PassTimes relative_costs(const PassCosts& costs) {
  std::vector<PassTimes::Measured> relative;
  relative.reserve(costs.passes.size());
  const double one_row = costs.passes.front().seconds.median;
  for (const PassCost& pass : costs.passes) {
    relative.push_back({pass.rows, pass.seconds.median / one_row});
  }
  return PassTimes(std::move(relative));
}

void BoundSums::add(const DraftOutcome& outcome, const PassTimes& costs) {
  const auto n = static_cast<double>(outcome.n);
  tokens += n * (outcome.accepted + 1);
  levels += n * outcome.accepted;
  oracle_cost += n * costs.seconds(outcome.accepted + 1);
  drafted_cost += n * costs.seconds(outcome.nodes + 1);
}

PerfectDraft perfect_draft(const PassTimes& costs, double level_cost) {
  PerfectDraft best;
  const int widest = costs.points().back().rows;
  for (int length = 1; length < widest; ++length) {
    const double speedup = (length + 1) / (costs.seconds(length + 1) + length * level_cost);
    if (speedup > best.speedup) best = {.length = length, .speedup = speedup};
  }
  return best;
}

}  // namespace outrider
