// SPDX-License-Identifier: Apache-2.0
// Lossy greedy speculation: the drafter's token v is accepted where the target finds it nearly as
// good as its own,
//   target(v) >= (1 - alpha) max target
// on raw distributions; elsewhere the target's likeliest token is emitted. For temperature 0 only.
//
// Source: Leviathan, Kalman, Matias 2023, appendix A.5 (for greedy decoding). There the token after
// a draft accepted whole is the target's, so bonus=target is this rule's default. With bonus=rule
// it is token-v3 at temperature 0 (Narasimhan et al. 2024, lemma 7).
#ifndef OUTRIDER_SPECULATE_RULES_LOSSY_GREEDY_H_
#define OUTRIDER_SPECULATE_RULES_LOSSY_GREEDY_H_

#include "speculate/rules/cascade_rule.h"

namespace outrider {

class LossyGreedyRule final : public CascadeRule {
 public:
  explicit LossyGreedyRule(double alpha) : alpha_(alpha) {}
  const char* name() const override { return "lossy-greedy"; }
  RuleNeeds needs() const override {
    return {.draft_prob = true, .raw_draft = false, .leaf_draft = true, .greedy = true};
  }

 private:
  bool refuses(NodeViews& views, int node, const Distribution& draft_prob) const;
  void interleave(NodeViews& views, int node, const Distribution& draft_prob,
                  Distribution& out) const override;
  double deferred_share(NodeViews& views, int node, const Distribution& draft_prob,
                        const Distribution& rule_prob) const override;

  double alpha_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_RULES_LOSSY_GREEDY_H_
