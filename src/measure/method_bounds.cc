#include "measure/method_bounds.h"

#include <algorithm>
#include <cstddef>

namespace outrider {

RelativeCosts::RelativeCosts(const PassCosts& costs) {
  rows_.reserve(costs.passes.size());
  costs_.reserve(costs.passes.size());
  const double one_row = costs.passes.front().seconds.median;
  for (const PassCost& pass : costs.passes) {
    rows_.push_back(pass.rows);
    costs_.push_back(pass.seconds.median / one_row);
  }
}

double RelativeCosts::at(int rows) const {
  const auto found = std::lower_bound(rows_.begin(), rows_.end(), rows);
  if (found != rows_.end() && *found == rows) {
    return costs_[static_cast<std::size_t>(found - rows_.begin())];
  }
  if (rows_.size() == 1) return costs_.front();
  const bool is_beyond = found == rows_.end();
  const auto above = is_beyond ? rows_.size() - 1 : static_cast<std::size_t>(found - rows_.begin());
  const std::size_t below = above - 1;
  const double slope = (costs_[above] - costs_[below]) / (rows_[above] - rows_[below]);
  const double cost = costs_[below] + slope * (rows - rows_[below]);
  return is_beyond ? std::max(cost, costs_.back()) : cost;
}

void BoundSums::add(const DraftOutcome& outcome, const RelativeCosts& costs) {
  const auto n = static_cast<double>(outcome.n);
  tokens += n * (outcome.accepted + 1);
  levels += n * outcome.accepted;
  oracle_cost += n * costs.at(outcome.accepted + 1);
  drafted_cost += n * costs.at(outcome.nodes + 1);
}

PerfectDraft perfect_draft(const RelativeCosts& costs, double level_cost) {
  PerfectDraft best;
  for (int length = 1; length < costs.widest(); ++length) {
    const double speedup = (length + 1) / (costs.at(length + 1) + length * level_cost);
    if (speedup > best.speedup) best = {.length = length, .speedup = speedup};
  }
  return best;
}

}  // namespace outrider
