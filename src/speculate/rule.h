// A rule: a map from (draft_prob, target_prob) at a node to the distribution that is really
// emitted. Those that trade quality for speed are in rules/.
#ifndef OUTRIDER_SPECULATE_RULE_H_
#define OUTRIDER_SPECULATE_RULE_H_

#include "sampling/distribution.h"
#include "speculate/node_views.h"

namespace outrider {

// What a rule or an acceptance asks of the drafter and of the request.
struct RuleNeeds {
  bool draft_prob = false;  // the drafter's distributions: it must have some
  bool raw_draft = false;   // these before temperature and truncation, too
  bool leaf_draft = false;  // all this also where a draft ended: a step of the drafter more
  bool greedy = false;      // temperature 0: the rule means nothing above it
  bool past_cost = false;   // what the text has cost so far (NodeViews::rule_kl_before_root)
};

// What one emitted position cost, against the target's own distribution.
struct RuleCost {
  double kl = 0;               // KL(rule_prob || target_prob) in nats; can be infinite
  double total_variation = 0;  // between the two, from 0 to 1
  double deferral = 0;         // the share of the draft's mass left to the target, from 0 to 1
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
  // The share of the draft's mass that the rule leaves to the target there; rule_prob is what it
  // has written for the node. 0 for rules that look at the target alone: they decide nothing.
  virtual double deferral(NodeViews& views, int node, const Distribution& rule_prob) const;
};

// What the position after `node` costs if it is drawn from rule_prob, the rule's own there. Nothing
// for a rule that needs no draft_prob.
RuleCost cost_of(const Rule& rule, NodeViews& views, int node, const Distribution& rule_prob);

// rule_prob = target_prob: lossless speculation.
class ExactRule final : public Rule {
 public:
  const char* name() const override { return "exact"; }
  void rule_prob(NodeViews& views, int node, Distribution& out) const override {
    out.become(views.target(node));
  }
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_RULE_H_
