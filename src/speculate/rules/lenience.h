// SPDX-License-Identifier: Apache-2.0
// Lenience: a draft token x is accepted with probability min(1, f(target_prob(x)) / draft_prob(x)),
// where f is one of
//   linear: target_prob / eps     square: target_prob / eps^2     exp: target_prob^eps
// with eps in (0, 1]. Otherwise it is replaced by a token from normalise(max(0, target_prob -
// draft_prob)). As a distribution:
//   m(v) = min(draft_prob(v), f(target_prob(v)))
//   rule_prob = m + (1 - sum m) normalise(max(0, target_prob - draft_prob)).
// eps = 1 is the target; linear is `lossy` with alpha = 1 - eps and beta = 1.
//
// Sources: Leviathan, Kalman, Matias 2023, appendix A.5 (linear); Zhou et al., "DistillSpec:
// Improving Speculative Decoding via Knowledge Distillation" (2024), lossy decoding.
#ifndef OUTRIDER_SPECULATE_RULES_LENIENCE_H_
#define OUTRIDER_SPECULATE_RULES_LENIENCE_H_

#include "speculate/rules/cascade_rule.h"

namespace outrider {

class LenienceRule final : public CascadeRule {
 public:
  enum class Function { linear, square, exp };
  LenienceRule(Function function, double eps) : function_(function), eps_(eps) {}
  const char* name() const override { return "lenience"; }

 private:
  void interleave(NodeViews& views, int node, const Distribution& draft_prob,
                  Distribution& out) const override;

  Function function_;
  double eps_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_RULES_LENIENCE_H_
