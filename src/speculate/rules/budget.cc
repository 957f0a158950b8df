// SPDX-License-Identifier: Apache-2.0
#include "speculate/rules/budget.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/elementary.h"
#include "sampling/divergence.h"

namespace outrider {
namespace {

// All distributions max(floor target, min(draft, ceiling target)) of one pair of distributions.
// Tokens are sorted by draft / target with prefix sums, so each distribution costs a binary search.
class ClampedDistributions {
 public:
  ClampedDistributions(const Distribution& draft_prob, const Distribution& target_prob) {
    struct Token {
      double ratio, draft, target;
    };
    std::vector<Token> tokens;
    for_each_in_either(draft_prob, target_prob, [&](TokenId, double in_draft, double in_target) {
      if (in_target > 0) tokens.push_back({in_draft / in_target, in_draft, in_target});
    });
    std::sort(tokens.begin(), tokens.end(),
              [](const Token& a, const Token& b) { return a.ratio < b.ratio; });
    ratios_.reserve(tokens.size());
    sums_.reserve(tokens.size() + 1);
    Sums sums;
    sums_.push_back(sums);
    for (const Token& token : tokens) {
      sums.draft += token.draft;
      sums.target += token.target;
      if (token.draft > 0) sums.kl += token.draft * portable_log(token.ratio);
      ratios_.push_back(token.ratio);
      sums_.push_back(sums);
    }
  }

  double largest_ceiling() const { return std::max(1.0, ratios_.empty() ? 1.0 : ratios_.back()); }

  // The floor at which the distribution of this ceiling sums to 1.
  double floor_for(double ceiling) const {
    const Sums& all = sums_.back();
    const Sums& below = sums_[n_below(ceiling)];
    const double wanted = 1 - (below.draft + ceiling * (all.target - below.target));
    if (wanted <= 0) return 0;
    // The first k tokens are raised to the floor. Raising them to the next one's ratio would add
    // ratios_[k] * target - draft too much, which grows with k.
    std::size_t low = 1;
    std::size_t high = ratios_.size();
    while (low < high) {
      const std::size_t k = (low + high) / 2;
      if (ratios_[k] * sums_[k].target - sums_[k].draft < wanted) {
        low = k + 1;
      } else {
        high = k;
      }
    }
    return std::min(1.0, (wanted + sums_[low].draft) / sums_[low].target);
  }

  double kl(double ceiling, double floor) const {
    const Sums& all = sums_.back();
    const Sums& capped = sums_[n_below(ceiling)];
    const Sums& lifted = sums_[n_below(floor)];
    double sum = capped.kl - lifted.kl;
    if (floor > 0) sum += floor * portable_log(floor) * lifted.target;
    return sum + ceiling * portable_log(ceiling) * (all.target - capped.target);
  }

 private:
  // Prefix sums over the first tokens.
  struct Sums {
    double draft = 0, target = 0, kl = 0;
  };
  std::size_t n_below(double ratio) const {
    return static_cast<std::size_t>(std::lower_bound(ratios_.begin(), ratios_.end(), ratio) -
                                    ratios_.begin());
  }

  std::vector<double> ratios_;  // ascending
  std::vector<Sums> sums_;      // [k]: over the first k of them
};

}  // namespace

void fastest_within(const Distribution& draft_prob, const Distribution& target_prob, double budget,
                    Distribution& out) {
  if (kl_divergence(draft_prob, target_prob) <= budget) {
    out = draft_prob;
    return;
  }
  if (!(budget > 0)) {
    out = target_prob;
    return;
  }
  const ClampedDistributions dists(draft_prob, target_prob);
  // The largest ceiling within the budget, by bisection of its logarithm until halving changes
  // nothing; `low` is always within. There are at most as many steps as a double has bits.
  double low = 0;
  double high = portable_log(dists.largest_ceiling());
  if (dists.kl(dists.largest_ceiling(), dists.floor_for(dists.largest_ceiling())) <= budget)
    low = high;
  for (;;) {
    const double middle = (low + high) / 2;
    if (!(middle > low && middle < high)) break;
    const double ceiling = portable_exp(middle);
    (dists.kl(ceiling, dists.floor_for(ceiling)) <= budget ? low : high) = middle;
  }
  const double ceiling = portable_exp(low);
  const double floor = dists.floor_for(ceiling);
  out.clear();
  for_each_in_either(draft_prob, target_prob, [&](TokenId id, double in_draft, double in_target) {
    const double prob = std::max(floor * in_target, std::min(in_draft, ceiling * in_target));
    if (prob <= 0) return;
    out.ids.push_back(id);
    out.probs.push_back(prob);
  });
  // Rounding of the sums may have exceeded the budget a little. Divergence is convex: mixing in a
  // share s of the target leaves at most 1 - s of it.
  const double got = kl_divergence(out, target_prob);
  if (got > budget) {
    const double share = 1 - budget / got;
    Distribution mixed;
    for_each_in_either(out, target_prob, [&](TokenId id, double in_out, double in_target) {
      mixed.ids.push_back(id);
      mixed.probs.push_back((1 - share) * in_out + share * in_target);
    });
    out = std::move(mixed);
  }
}

double BudgetRule::spent_before(NodeViews& views, int node) const {
  const int parent = views.parent(node);
  if (parent < 0) return views.rule_kl_before_root();
  double& spent = views.note(node);
  if (std::isnan(spent)) {
    Distribution dist;
    rule_prob(views, parent, dist);
    spent = spent_before(views, parent) + kl_divergence(dist, views.target(parent));
  }
  return spent;
}

void BudgetRule::interleave(NodeViews& views, int node, const Distribution& draft_prob,
                            Distribution& out) const {
  double budget = budget_.per_token;
  if (std::isfinite(budget_.per_text)) {
    budget = std::min(budget, budget_.per_text - spent_before(views, node));
  }
  fastest_within(draft_prob, views.target(node), budget, out);
}

}  // namespace outrider
