// SPDX-License-Identifier: Apache-2.0
// Traversal verification: the whole tree is judged from its leaves up. The emitted distribution is
// that of rejection down the tree; on a chain it is block verification, draw for draw.
//
// Source: Weng, Hu, Chen et al., "Traversal Verification for Speculative Tree Decoding" (2025), for
// siblings of one drafter without replacement. Derived here for any proposal distributions:
//
// A node u is judged with a weight w and a distribution r, under this contract: u is accepted with
// probability w; given that, what is emitted after it follows r (and the rule from there on). The
// root has w = 1 and r its rule_prob.
// - A leaf is accepted with probability w; the next token is drawn from r.
// - A child c, drawn from the distribution d, is judged first, with the weight min(1, w r(c) /
//   d(c)) and its own rule_prob. By its contract, c = x is emitted with probability min(d(x), w
//   r(x)) for every x. The remainder to emit after u is then (w r - d)+, with mass m; the remaining
//   probability is 1 - w + m, whatever the rejected x was. So u continues with its next child, or,
//   if it has none, is judged as a leaf, with
//       w <- m / (m + 1 - w),   r <- (w r - d)+ / m.
// Any d is allowed: it may depend on earlier siblings (drawing without replacement), be a point
// mass, or belong to another drafter. The way in which the tree was grown does not matter either.
// Append one more child to any tree, drawn from its distribution independently of earlier draws.
// This splits one node's judgement into two and leaves the contract of all others unchanged. So by
// induction from the tree of the root alone the emitted distribution is the rule's.
//
// Compared with rejection down the tree: in both, a path of point masses is accepted with the
// rule's probability of it. So on such trees both accept equally many tokens in expectation. With
// sampled nodes, the weight of a likely continuation is carried back to its ancestors. For siblings
// drawn with replacement the expected number of accepted tokens is never smaller if earlier
// siblings have at least the subtrees of later ones. All published shapes have this property
// (docs/drafters.md). For siblings drawn without replacement it is usually larger; for some
// distributions it is slightly smaller (tree_exactness_test.cc has examples).
#ifndef OUTRIDER_SPECULATE_ACCEPTANCES_TRAVERSAL_H_
#define OUTRIDER_SPECULATE_ACCEPTANCES_TRAVERSAL_H_

#include <memory>
#include <utility>
#include <vector>

#include "speculate/acceptances/acceptance.h"
#include "speculate/acceptances/block.h"

namespace outrider {

// The steps of the algorithm: weight, accept_prob and accept_draw as in block verification, and
// reject.
struct TraversalSteps : BlockSteps {
  // rule_prob <- normalise(max(0, weight * rule_prob - proposal)); returns the mass before
  // normalisation. If that is 0, rule_prob is unchanged.
  static double reject(Distribution& rule_prob, double weight, const Distribution& proposal) {
    return subtract_and_normalise(rule_prob, proposal, weight);
  }
};

template <class Steps>
class Traversal final : public Acceptance {
 public:
  explicit Traversal(std::shared_ptr<const Rule> rule) : rule_(std::move(rule)) {}
  std::string_view name() const override { return "traversal"; }
  RuleNeeds needs() const override { return rule_->needs(); }

  void verify(const DraftTree& tree, NodeViews& views, Chance& chance,
              Verdict& verdict) const override {
    // From the root to the node whose children are being judged; later elements are storage.
    std::vector<Verdict::Judged>& path = verdict.judged;
    std::size_t depth = 0;
    const auto begin = [&path, &depth](int node, double weight) {
      if (path.size() <= depth) path.resize(depth + 1);
      Verdict::Judged& judged = path[depth];
      judged.node = judged.last_child = node;
      judged.weight = weight;
      judged.looked_at = false;
    };
    begin(0, 1.0);
    Distribution& storage = verdict.proposal;
    for (;;) {
      Verdict::Judged& at = path[depth];
      const int child = at.weight > 0 ? tree.next_child(at.node, at.last_child) : -1;
      if (child >= 0) {
        if (!is_known(at)) look_at(views, at);
        const TokenId token = tree.node(child).token;
        const double proposal_prob = tree.proposal_prob(child, storage).prob(token);
        const double weight = Steps::weight(at.weight, at.rule_prob.prob(token), proposal_prob);
        at.last_child = child;
        ++depth;
        begin(child, weight);
        continue;
      }
      // The root is always accepted: its weight stays 1 up to rounding.
      if (at.node == 0 || chance.bernoulli(at.weight, Steps::accept_draw(tree, at.node))) break;
      const int rejected = at.node;
      Verdict::Judged& parent = path[--depth];
      const double mass =
          Steps::reject(parent.rule_prob, parent.weight, tree.proposal_prob(rejected, storage));
      // No mass left at the root: the two distributions are equal, and only rounding rejected the
      // child.
      if (parent.node != 0 || mass > 0) parent.weight = Steps::accept_prob(mass, parent.weight);
    }
    Verdict::Judged& last = path[depth];
    if (!is_known(last)) look_at(views, last);
    verdict.path.clear();
    verdict.costs.clear();
    for (std::size_t i = 0; i <= depth; ++i) {
      if (path[i].node != 0) verdict.path.push_back(path[i].node);
      verdict.costs.push_back(path[i].cost);
    }
    verdict.corrected = last.last_child != last.node;
    std::swap(verdict.next_prob, last.rule_prob);
    verdict.next = chance.categorical(
        verdict.next_prob,
        {tree.n_committed(), last.node, verdict.corrected ? Purpose::residual : Purpose::bonus});
  }

 private:
  // A distribution of which rejections have left nothing (by rounding) is computed again.
  static bool is_known(const Verdict::Judged& at) {
    return at.looked_at && !at.rule_prob.ids.empty();
  }

  void look_at(NodeViews& views, Verdict::Judged& at) const {
    rule_->rule_prob(views, at.node, at.rule_prob);
    at.cost = cost_of(*rule_, views, at.node, at.rule_prob);
    at.looked_at = true;
  }

  std::shared_ptr<const Rule> rule_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_ACCEPTANCES_TRAVERSAL_H_
