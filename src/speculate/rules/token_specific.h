// SPDX-License-Identifier: Apache-2.0
// Token-specific interleaving: the drafter's mass on acceptable tokens stays, and the mass of the
// others goes to the target,
//   rule_prob(v) = draft_prob(v) (1 - r(v)) + target_prob(v) eta,   eta = sum of r(v)
//   draft_prob(v).
// r is decided on raw distributions; the transformed ones are interleaved. A token v is refused,
// r(v) = 1, when
//   v1: draft(v)  < max target - alpha
//   v2: target(v) < max target - alpha
//   v3: target(v) < max target (1 - alpha)
// Source: Narasimhan et al. 2024, section 5, algorithm 6, eqs. 13 to 15 and appendix C.1. alpha = 1
// leaves all to the drafter; alpha < 0 (v2, v3) and alpha = -1 (v1) all to the target.
#ifndef OUTRIDER_SPECULATE_RULES_TOKEN_SPECIFIC_H_
#define OUTRIDER_SPECULATE_RULES_TOKEN_SPECIFIC_H_

#include "speculate/rules/cascade_rule.h"

namespace outrider {

class TokenSpecificRule final : public CascadeRule {
 public:
  enum class Variant { v1, v2, v3 };
  TokenSpecificRule(Variant variant, double alpha) : variant_(variant), alpha_(alpha) {}
  const char* name() const override;
  RuleNeeds needs() const override;

 private:
  // r as the least acceptable probability in the raw distribution that the variant uses.
  struct Bar {
    const Distribution* raw = nullptr;
    double min_prob = 0;
    bool refuses(TokenId token) const { return raw->prob(token) < min_prob; }
  };
  Bar bar(NodeViews& views, int node) const;

  void interleave(NodeViews& views, int node, const Distribution& draft_prob,
                  Distribution& out) const override;
  double deferred_share(NodeViews& views, int node, const Distribution& draft_prob,
                        const Distribution& rule_prob) const override;

  Variant variant_;
  double alpha_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_RULES_TOKEN_SPECIFIC_H_
