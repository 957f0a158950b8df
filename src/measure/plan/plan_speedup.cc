// SPDX-License-Identifier: Apache-2.0
// The predicted gain of drafts: tau from the acceptance, seconds from the formula for passes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "outrider/error.h"
#include "outrider/speed_plan.h"
#include "outrider/tune.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "plan speed";

void check(const SpeedPlanOptions& options) {
  const std::vector<double>& shares = options.acceptance;
  const bool in_range = std::all_of(shares.begin(), shares.end(),
                                    [](double share) { return share >= 0 && share <= 1; });
  // Shares written by people add up to 1 within rounding.
  constexpr double kRounding = 1e-9;
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (shares.empty() || !in_range || sum > 1 + kRounding) {
    throw UsageError(kOperation, "acceptance", "shares from 0 to 1, by rank, of 1 at most together",
                     shares.empty() ? "none" : fmt::format("{:g} together", sum));
  }
  if (options.length < -1 || options.length > kLongestPlannedChain) {
    throw UsageError(kOperation, "length", fmt::format("0 to {}", kLongestPlannedChain),
                     fmt::format("{}", options.length));
  }
}

class Rounds {
 public:
  Rounds(const ModelShape& target, const ModelShape* drafter, const Device& device,
         const SpeedPlanOptions& options)
      : target_(target), drafter_(drafter), device_(device), options_(options) {
    plain_ = pass_of(target_, 1);
  }

  const PassSeconds& plain() const { return plain_; }

  PassSeconds target_pass(int rows) const { return pass_of(target_, rows); }

  // A draft level is a pass of the drafter over the nodes of the level before.
  double level_seconds(int rows) const {
    return drafter_ == nullptr ? 0 : pass_of(*drafter_, rows).total();
  }

  PlannedRound round(std::vector<int> level_sizes, double tau) const {
    PlannedRound round;
    int n_parents = 1;
    for (const int size : level_sizes) {
      round.draft_seconds += level_seconds(n_parents);
      round.n_nodes += size;
      n_parents = size;
    }
    const PassSeconds pass = target_pass(round.n_nodes + 1);
    round.level_sizes = std::move(level_sizes);
    round.tau = tau;
    round.pass_seconds = pass.total();
    round.waits_for_memory = pass.waits_for_memory();
    round.speedup = tau * plain_.total() / (round.draft_seconds + round.pass_seconds);
    return round;
  }

  PlannedRound chain(int length) const {
    return round(std::vector<int>(static_cast<std::size_t>(length), 1),
                 chain_tau(options_.acceptance.front(), length));
  }

  PlannedRound best_chain() const {
    PlannedRound best = chain(0);
    for (int length = 1; length <= kLongestPlannedChain; ++length) {
      PlannedRound longer = chain(length);
      if (longer.speedup > best.speedup) best = std::move(longer);
    }
    return best;
  }

  // Planned as by `outrider tune tree`, as if a level cost the drafter one row.
  PlannedRound best_tree() const {
    TreeProfile profile;
    profile.accept_by_rank = options_.acceptance;
    profile.level_seconds = level_seconds(1);
    for (int rows = 1; rows <= kMaxPlannedNodes + 1; ++rows) {
      profile.passes.push_back({.rows = rows, .seconds = target_pass(rows).total()});
    }
    const PlannedDraft draft = plan_tree(profile);
    PlannedRound tree = round(draft.level_sizes, draft.tau);
    PlannedRound chain = best_chain();
    return tree.speedup > chain.speedup ? tree : chain;
  }

 private:
  PassSeconds pass_of(const ModelShape& shape, int rows) const {
    return pass_seconds(shape,
                        {.weights = options_.weights,
                         .rows = rows,
                         .context = options_.context,
                         .batch = options_.batch},
                        device_);
  }

  const ModelShape& target_;
  const ModelShape* drafter_;
  const Device& device_;
  const SpeedPlanOptions& options_;
  PassSeconds plain_;
};

}  // namespace

double chain_tau(double acceptance, int length) {
  double tau = 0;
  for (int depth = 0; depth <= length; ++depth) tau += std::pow(acceptance, depth);
  return tau;
}

SpeedPlan plan_speedup(const ModelShape& target, const ModelShape* drafter, const Device& device,
                       const SpeedPlanOptions& options) {
  check(options);
  const Rounds rounds(target, drafter, device, options);
  SpeedPlan plan;
  plan.plain = rounds.plain();
  plan.best = options.acceptance.size() > 1 ? rounds.best_tree() : rounds.best_chain();
  plan.asked = options.length < 0 ? plan.best : rounds.chain(options.length);
  return plan;
}

}  // namespace outrider
