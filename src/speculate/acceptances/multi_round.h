// SPDX-License-Identifier: Apache-2.0
// Generalised multi-round verification: rejection sampling down a draft tree.
//
// At a node, rule_prob is computed once. Then for each child c in drawing order, with the
// distribution proposal_prob that c was drawn from: accept c with probability min(1, rule_prob[c] /
// proposal_prob[c]), else rule_prob <- normalise(max(0, rule_prob - proposal_prob)). If no child is
// accepted, the next token is drawn from the remaining rule_prob. Since
//   min(r, d) + (1 - sum min(r, d)) * normalise(max(0, r - d)) = r
// for any distribution d, the emitted distribution is the rule's for all kinds of children:
// siblings drawn with or without replacement, point masses, merged drafters.
//
// Sources: Leviathan, Kalman, Matias, "Fast Inference from Transformers via Speculative Decoding"
// (2023), algorithm 1, for a single child; SpecInfer (Miao et al., 2024) and EAGLE (Li et al.,
// 2024), appendix A.2, for siblings.
#ifndef OUTRIDER_SPECULATE_ACCEPTANCES_MULTI_ROUND_H_
#define OUTRIDER_SPECULATE_ACCEPTANCES_MULTI_ROUND_H_

#include <algorithm>
#include <memory>
#include <utility>

#include "speculate/acceptances/acceptance.h"

namespace outrider {

// The steps of the algorithm. Each can be replaced, so that a test can break one and see the proof
// of exactness fail.
struct MultiRoundSteps {
  static double accept_prob(double rule_prob, double proposal_prob) {
    return rule_prob >= proposal_prob ? (rule_prob > 0 ? 1.0 : 0.0) : rule_prob / proposal_prob;
  }
  // Returns the mass left before normalisation; 0 leaves rule_prob unchanged.
  static double reject(Distribution& rule_prob, const Distribution& proposal) {
    return subtract_and_normalise(rule_prob, proposal);
  }
  static Draw accept_draw(const DraftTree& tree, int child) {
    return {tree.n_committed(), child, Purpose::accept};
  }
  static void leaf_prob(const Rule& rule, NodeViews& views, int leaf, Distribution& out) {
    rule.rule_prob(views, leaf, out);
  }
};

// The first accepted sibling from `child` on, or -1. Subtracts the proposal of each rejected one
// from rule_prob. `storage` is working memory.
template <class Steps>
int first_accepted(const DraftTree& tree, int child, Distribution& rule_prob, Distribution& storage,
                   Chance& chance) {
  const int parent = tree.node(child).parent;
  for (; child >= 0; child = tree.next_child(parent, child)) {
    const TokenId token = tree.node(child).token;
    const Distribution& proposal = tree.proposal_prob(child, storage);
    const double accept = Steps::accept_prob(rule_prob.prob(token), proposal.prob(token));
    if (chance.bernoulli(accept, Steps::accept_draw(tree, child))) return child;
    // No mass left means that the two distributions were equal and the rejection a rounding error.
    if (Steps::reject(rule_prob, proposal) <= 0) return child;
  }
  return -1;
}

template <class Steps>
class MultiRound final : public Acceptance {
 public:
  explicit MultiRound(std::shared_ptr<const Rule> rule) : rule_(std::move(rule)) {}
  std::string_view name() const override { return "exact"; }
  RuleNeeds needs() const override { return rule_->needs(); }

  void verify(const DraftTree& tree, NodeViews& views, Chance& chance,
              Verdict& verdict) const override {
    verdict.path.clear();
    verdict.costs.clear();
    Distribution& rule_prob = verdict.next_prob;
    int node = 0;
    for (int child = tree.next_child(node, node); child >= 0; child = tree.next_child(node, node)) {
      rule_->rule_prob(views, node, rule_prob);
      verdict.costs.push_back(cost_of(*rule_, views, node, rule_prob));
      child = first_accepted<Steps>(tree, child, rule_prob, verdict.proposal, chance);
      if (child < 0) {
        verdict.corrected = true;
        verdict.next = chance.categorical(rule_prob, {tree.n_committed(), node, Purpose::residual});
        return;
      }
      verdict.path.push_back(child);
      node = child;
    }
    Steps::leaf_prob(*rule_, views, node, rule_prob);
    verdict.costs.push_back(cost_of(*rule_, views, node, rule_prob));
    verdict.corrected = false;
    verdict.next = chance.categorical(rule_prob, {tree.n_committed(), node, Purpose::bonus});
  }

 private:
  std::shared_ptr<const Rule> rule_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_ACCEPTANCES_MULTI_ROUND_H_
