// SPDX-License-Identifier: Apache-2.0
// Lossy speculative sampling: a draft token x is accepted with probability
//   min(1, target_prob(x) / ((1 - alpha) draft_prob(x)))
// and is otherwise replaced by one from normalise(max(0, target_prob / beta - draft_prob)). As a
// distribution, which trees and several rounds need:
//   m(v) = min(draft_prob(v), target_prob(v) / (1 - alpha))
//   rule_prob = m + (1 - sum m) normalise(max(0, target_prob / beta - draft_prob)).
// alpha = 0 with beta = 1 is the target. Both are transformed distributions, so at temperature 0
// the rule is the target's for any alpha (Narasimhan et al. 2024, appendix C.2).
//
// beta = auto is the value for which lemma 2's map, max(m, target_prob / beta), is already a
// distribution: sum of max(m, target_prob / beta) = 1. As that sum is at least 1 for beta <= 1,
// this beta is 1 or more.
//
// Sources: Tran-Thien, "An optimal lossy variant of speculative decoding" (2023); Narasimhan et al.
// 2024, section 2 and lemma 2.
#ifndef OUTRIDER_SPECULATE_RULES_LOSSY_H_
#define OUTRIDER_SPECULATE_RULES_LOSSY_H_

#include <optional>

#include "speculate/rules/cascade_rule.h"

namespace outrider {

class LossyRule final : public CascadeRule {
 public:
  // alpha in [0, 1), beta in [1 - alpha, 1]; no beta: auto.
  LossyRule(double alpha, std::optional<double> beta) : alpha_(alpha), beta_(beta) {}
  const char* name() const override { return "lossy"; }

 private:
  void interleave(NodeViews& views, int node, const Distribution& draft_prob,
                  Distribution& out) const override;

  double alpha_;
  std::optional<double> beta_;
};

// 1 / beta of beta = auto, in [0, 1], for the caps ceiling * target_prob, ceiling >= 1:
//   sum of max(0, x target_prob - draft_prob) = 1 - sum of min(draft_prob, ceiling target_prob).
// O(size) times a few steps.
double auto_floor(const Distribution& draft_prob, const Distribution& target_prob, double ceiling);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_RULES_LOSSY_H_
