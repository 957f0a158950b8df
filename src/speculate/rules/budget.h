// SPDX-License-Identifier: Apache-2.0
// A certified cap: at each position, the distribution that rejects the fewest draft tokens among
// all whose divergence from the target fits the budget,
//   minimise  total_variation(rule_prob, draft_prob)   (the probability of a rejection)
//   subject to  KL(rule_prob || target_prob) <= budget.
// It is, for some ceiling >= 1 >= floor,
//   rule_prob = max(floor target_prob, min(draft_prob, ceiling target_prob)).
//
// Derivation. With multipliers lambda >= 0 for the divergence and mu for the sum, the Lagrangian
//   sum of max(0, draft_prob - r) + lambda r log(r / target_prob) + mu r
// is convex in r and separates over tokens. Its derivative in r(v) is lambda (1 + log(r(v) /
// target_prob(v))) + mu, less 1 while r(v) < draft_prob(v). It vanishes at r = ceiling target_prob
// if that is below draft_prob(v), and at r = floor target_prob if that is above, with ceiling =
// floor e^(1 / lambda). In between the derivative jumps over 0 at r = draft_prob(v). So `lossy`
// with beta = auto has the optimal form, and a budget determines alpha, by ceiling = 1 / (1 -
// alpha): the divergence grows with ceiling, from 0 at ceiling = 1. No linear mixture of the two
// distributions within the budget rejects fewer tokens.
//
// With a budget for the whole text, a position's cap is the rest that earlier positions left (and
// at most the cap per token, if there is one). Their cost is a function of the prefix, so this rule
// still is. By the chain rule the cap then holds for the distribution of whole texts: the
// divergence of the emitted text's distribution from the target's is the expectation of the sum, at
// most the budget.
//
// Source: Tran-Thien, "An optimal lossy variant of speculative decoding" (2023) for a cap per
// token; the derivation and the budget per text are ours.
#ifndef OUTRIDER_SPECULATE_RULES_BUDGET_H_
#define OUTRIDER_SPECULATE_RULES_BUDGET_H_

#include <cmath>
#include <limits>

#include "speculate/rules/cascade_rule.h"

namespace outrider {

// In nats; infinite: no limit.
struct KlBudget {
  double per_token = std::numeric_limits<double>::infinity();
  double per_text = std::numeric_limits<double>::infinity();
};

class BudgetRule final : public CascadeRule {
 public:
  explicit BudgetRule(KlBudget budget, const char* name = "budget")
      : budget_(budget), name_(name) {}
  const char* name() const override { return name_; }
  RuleNeeds needs() const override {
    RuleNeeds needs = CascadeRule::needs();
    needs.past_cost = std::isfinite(budget_.per_text);
    return needs;
  }

 private:
  void interleave(NodeViews& views, int node, const Distribution& draft_prob,
                  Distribution& out) const override;
  // The text's cost up to and including the node's own position.
  double spent_before(NodeViews& views, int node) const;

  KlBudget budget_;
  const char* name_;
};

// Writes the optimum above. O(size log size). kl_divergence(out, target_prob) <= budget up to the
// rounding of the sum itself.
void fastest_within(const Distribution& draft_prob, const Distribution& target_prob, double budget,
                    Distribution& out);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_RULES_BUDGET_H_
