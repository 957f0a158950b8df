// SPDX-License-Identifier: Apache-2.0
// The base of rules that interleave drafter and target.
#ifndef OUTRIDER_SPECULATE_RULES_CASCADE_RULE_H_
#define OUTRIDER_SPECULATE_RULES_CASCADE_RULE_H_

#include "speculate/rule.h"

namespace outrider {

// Where the drafter has no distribution, rule_prob is the target's and all is deferred. That
// happens if the drafter's context is full, a token is not in its vocabulary, or the draft ended
// and the rule needs no more.
class CascadeRule : public Rule {
 public:
  RuleNeeds needs() const override { return {.draft_prob = true, .leaf_draft = true}; }
  void rule_prob(NodeViews& views, int node, Distribution& out) const final;
  double deferral(NodeViews& views, int node, const Distribution& rule_prob) const final;

 protected:
  // Writes rule_prob at a node where the drafter has draft_prob.
  virtual void interleave(NodeViews& views, int node, const Distribution& draft_prob,
                          Distribution& out) const = 0;
  // By default the mass of draft_prob that rule_prob replaces: the probability that a token drawn
  // from draft_prob is rejected.
  virtual double deferred_share(NodeViews& views, int node, const Distribution& draft_prob,
                                const Distribution& rule_prob) const;
};

// A cascade proper: each position is entirely the target's or the drafter's,
//   rule_prob = (1 - delta) draft_prob + delta target_prob,  delta in {0, 1}.
// Narasimhan et al. 2024, eq. 6 and algorithm 5. delta is decided on raw distributions; the
// transformed ones are interleaved (their appendix C.1).
class DeferralRule : public CascadeRule {
 public:
  RuleNeeds needs() const override {
    return {.draft_prob = true, .raw_draft = true, .leaf_draft = true};
  }

 protected:
  // delta at a node where the drafter has a distribution.
  virtual bool defers(NodeViews& views, int node) const = 0;
  void interleave(NodeViews& views, int node, const Distribution& draft_prob,
                  Distribution& out) const final;
  double deferred_share(NodeViews& views, int node, const Distribution& draft_prob,
                        const Distribution& rule_prob) const final;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_RULES_CASCADE_RULE_H_
