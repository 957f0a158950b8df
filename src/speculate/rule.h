// SPDX-License-Identifier: Apache-2.0
// A rule: a map from (draft_prob, target_prob) at a node of a draft tree to the distribution that
// is emitted. Rules that trade quality for speed are in rules/.
#ifndef OUTRIDER_SPECULATE_RULE_H_
#define OUTRIDER_SPECULATE_RULE_H_

#include "sampling/distribution.h"
#include "speculate/node_views.h"

namespace outrider {

// What a rule or an acceptance needs from the drafter and the request. The decoder provides it in
// NodeViews; a request that does not fit is refused with UsageError before generation.
struct RuleNeeds {
  bool draft_prob = false;  // the drafter's distributions: it must have some
  bool raw_draft = false;   // also those before temperature and truncation
  bool leaf_draft = false;  // both also at the leaves, by one more step of the drafter
  bool greedy = false;      // temperature 0; other temperatures are refused
  bool past_cost = false;   // the cost of the text so far (NodeViews::rule_kl_before_root)
};

// How far one emitted position is from the target's own distribution.
struct RuleCost {
  double kl = 0;               // KL(rule_prob || target_prob) in nats; can be infinite
  double total_variation = 0;  // between the two, 0 to 1
  double deferral = 0;         // share of the draft's mass left to the target, 0 to 1
};

// rule_prob() is T(draft, target) of "Faster Cascades via Speculative Decoding" (Narasimhan et al.,
// 2024), eq. 4. Stateless and thread-safe.
class Rule {
 public:
  virtual ~Rule() = default;
  virtual const char* name() const = 0;
  virtual RuleNeeds needs() const { return {}; }

  // Writes rule_prob at `node` to `out`. It is computed from `views`, whose distributions do not
  // change when a sibling is rejected.
  virtual void rule_prob(NodeViews& views, int node, Distribution& out) const = 0;
  // The share of the draft's mass that the rule leaves to the target at `node`, 0 to 1. rule_prob
  // is the rule's result for the node. This default returns 0, for rules that do not read the
  // draft.
  virtual double deferral(NodeViews& views, int node, const Distribution& rule_prob) const;
};

// The cost of the position after `node` if its token is drawn from rule_prob, which the rule
// returned for that node. All 0 for a rule that needs no draft_prob.
RuleCost cost_of(const Rule& rule, NodeViews& views, int node, const Distribution& rule_prob);

// rule_prob = target_prob: lossless speculation.
class ExactRule final : public Rule {
 public:
  const char* name() const override { return "exact"; }
  void rule_prob(NodeViews& views, int node, Distribution& out) const override {
    out.assign(views.target(node));
  }
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_RULE_H_
