// Traversal verification: the whole tree is judged from its leaves up. The emitted law is that of
// rejection down the tree; on a chain it is block verification, draw for draw.
//
// Source: Weng, Hu, Chen et al., "Traversal Verification for Speculative Tree Decoding" (2025), for
// siblings of one drafter without replacement. Derived here for any laws of proposals:
//
// A node u is judged with a weight w and a law r, and keeps this contract: u stands with
// probability w, and given that it stands, what is emitted behind it follows r (and the rule's
// process from there). The root has w = 1 and r its rule_prob.
// - A leaf stands with probability w; the next token is drawn from r.
// - A child c, drawn from the law d, is judged first, with the weight min(1, w r(c) / d(c)) and its
//   own rule_prob. By its contract, c = x is emitted with probability min(d(x), w r(x)) for every
//   x. What is owed behind u is then (w r - d)+, with mass m; and of all cases the share 1 - w + m
//   remains, whatever the rejected x was. So u goes on to its next child, or, when it has none, is
//   judged as a leaf, with
//       w <- m / (m + 1 - w),   r <- (w r - d)+ / m.
// Any d serves: it may depend on earlier siblings (drawing without replacement), be a point mass,
// or belong to another drafter. How the tree came by its shape does not matter either: appending to
// any tree one more child, drawn from its law whatever was drawn before, splits one node's
// judgement into two and leaves the contract of all others as it was; so by induction from the tree
// of the root alone the emitted law is the rule's.
//
// Against rejection down the tree: in both, a path of point masses stands with the rule's
// probability of it, so on such trees the two accept equally many tokens in expectation. With
// sampled nodes, what a likely continuation is worth is carried back to its ancestors. The expected
// number of accepted tokens is never smaller for siblings drawn with replacement where earlier ones
// have at least the subtrees of later ones, as in all published shapes (docs/drafters.md). For
// siblings drawn without replacement it is larger as a rule, and there are laws for which it is
// slightly smaller (tree_exactness_test.cc has some).
#ifndef OUTRIDER_SPECULATE_TRAVERSAL_H_
#define OUTRIDER_SPECULATE_TRAVERSAL_H_

#include <memory>
#include <utility>
#include <vector>

#include "speculate/acceptance.h"
#include "speculate/block.h"

namespace outrider {

// The steps of the walk: weight, accept_prob and accept_draw as in block verification, and
struct TraversalSteps : BlockSteps {
  // rule_prob <- normalise(max(0, weight * rule_prob - proposal)); returns the mass before. If that
  // is 0, rule_prob is as it was.
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
    // From the root to the node whose children are being judged; what stands behind is storage.
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
      // The root always stands: rounding aside, its weight stays 1.
      if (at.node == 0 || chance.bernoulli(at.weight, Steps::accept_draw(tree, at.node))) break;
      const int rejected = at.node;
      Verdict::Judged& parent = path[--depth];
      const double mass =
          Steps::reject(parent.rule_prob, parent.weight, tree.proposal_prob(rejected, storage));
      // No mass left at the root: the two laws are equal, and rounding alone rejected the child.
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
  // A law of which rejections have left nothing (by rounding) is looked up anew.
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

#endif  // OUTRIDER_SPECULATE_TRAVERSAL_H_
