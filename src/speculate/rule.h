// SPDX-License-Identifier: Apache-2.0
// A rule: a map from (draft_prob, target_prob) at a node to the distribution that is emitted. Rules
// that trade quality for speed are in rules/.
#ifndef OUTRIDER_SPECULATE_RULE_H_
#define OUTRIDER_SPECULATE_RULE_H_

#include "sampling/distribution.h"
#include "speculate/node_views.h"

namespace outrider {

// What a rule or an acceptance needs from the drafter and the request.
struct RuleNeeds {
  bool draft_prob = false;  // the drafter's distributions: it must have some
  bool raw_draft = false;   // also those before temperature and truncation
  bool leaf_draft = false;  // all this also where a draft ended: one more step of the drafter
  bool greedy = false;      // temperature 0: the rule is undefined above it
  bool past_cost = false;   // the cost of the text so far (NodeViews::rule_kl_before_root)
};

// The cost of one emitted position against the target's own distribution.
struct RuleCost {
  double kl = 0;               // KL(rule_prob || target_prob) in nats; can be infinite
  double total_variation = 0;  // between the two, 0 to 1
  double deferral = 0;         // share of the draft's mass left to the target, 0 to 1
};

// T(draft, target) of "Faster Cascades via Speculative Decoding" (Narasimhan et al., 2024), eq. 4.
// Stateless and thread-safe.
class Rule {
 public:
  virtual ~Rule() = default;
  virtual const char* name() const = 0;
  virtual RuleNeeds needs() const { return {}; }

  // Writes rule_prob at `node`, computed from the node's unmodified distributions.
  virtual void rule_prob(NodeViews& views, int node, Distribution& out) const = 0;
  // The share of the draft's mass that the rule leaves to the target at `node`. rule_prob is the
  // rule's result for the node. 0 for rules that use the target alone.
  virtual double deferral(NodeViews& views, int node, const Distribution& rule_prob) const;
};

// The cost of the position after `node` if it is drawn from rule_prob, the rule's own there. 0 for
// a rule that needs no draft_prob.
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
