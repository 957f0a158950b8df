// SPDX-License-Identifier: Apache-2.0
// FLy: accepts some mismatches. The draft is judged by the exact rule, down the tree
// (multi_round.h). Where no child of a node is accepted, the first child that meets all of these is
// accepted:
//   the target is unsure there:  -(sum of p log p over its `top` likeliest tokens) >= entropy,
//   the request allows it:       it has a target probability above 0,
//   the target continues it:     the exact rule accepts `window` more tokens after it.
// The window is accepted with it. If a draft ends within the window, the exact rule holds. So
// drafts of at most `window` tokens give the exact rule's text and draws, and so do all drafts if
// `entropy` is out of reach.
//
// Acceptance of a mismatch depends on later tokens, so this is no rule: the text follows neither
// the target's distribution nor any other that could be stated. At temperature 0, rule_tv counts
// the accepted tokens that are not the target's.
//
// The entropy is that of the raw distribution, so that it is meaningful at temperature 0. If a
// request leaves the target a single token, as temperature 0 does, the raw probability must be
// above 0 instead. So tokens excluded by a grammar or a bias are never accepted; at other
// temperatures neither are those cut off by top-k, top-p or min-p.
//
// Source: Li et al., "Training-Free Loosely Speculative Decoding: Accepting Semantically Correct
// Drafts Beyond Exact Match" (arXiv 2511.22972). The paper has chains, and at temperature 0 the
// match with the target's likeliest token in place of the exact rule. The truncated entropy is that
// of the authors' program and of vLLM.
#ifndef OUTRIDER_SPECULATE_ACCEPTANCES_FLY_H_
#define OUTRIDER_SPECULATE_ACCEPTANCES_FLY_H_

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "base/elementary.h"
#include "sampling/divergence.h"
#include "speculate/acceptances/acceptance.h"
#include "speculate/acceptances/multi_round.h"

namespace outrider {

struct FlyLimits {
  static constexpr int kMaxTop = 64;

  double entropy = 0.3;  // nats
  int top = 3;           // tokens in the entropy, 1 to kMaxTop
  int window = 6;        // tokens, 1 or more
};

// The steps of the algorithm. Each can be replaced, so that a test can break one.
struct FlySteps {
  // Whether the target is unsure.
  static bool is_unsure(const Distribution& raw_target, const FlyLimits& limits) {
    std::array<double, FlyLimits::kMaxTop> room;
    double sum = 0;
    for (const double prob :
         largest_probs(raw_target, std::span(room).first(static_cast<std::size_t>(limits.top)))) {
      if (prob > 0) sum -= prob * portable_log(prob);
    }
    return sum >= limits.entropy;
  }
  static bool is_allowed(NodeViews& views, int node, TokenId token) {
    const Distribution& target = views.target(node);
    const Distribution& asked = target.ids.size() > 1 ? target : views.raw_target(node);
    return asked.prob(token) > 0;
  }
  static bool is_enough(int n_behind, const FlyLimits& limits) { return n_behind == limits.window; }
};

template <class Steps>
class Fly final : public Acceptance {
 public:
  explicit Fly(const FlyLimits& limits) : limits_(limits) {}
  std::string_view name() const override { return "fly"; }
  bool prefix_determined() const override { return false; }
  int min_depth() const override { return limits_.window + 1; }

  void verify(const DraftTree& tree, NodeViews& views, Chance& chance,
              Verdict& verdict) const override {
    verdict.path.clear();
    verdict.costs.clear();
    if (verdict.judged.empty()) verdict.judged.resize(1);
    int node = 0;
    for (int child = tree.next_child(node, node); child >= 0; child = tree.next_child(node, node)) {
      verdict.next_prob.assign(views.target(node));
      child =
          first_accepted<MultiRoundSteps>(tree, child, verdict.next_prob, verdict.proposal, chance);
      if (child >= 0) {
        verdict.path.push_back(child);
        verdict.costs.emplace_back();
      } else if (!let_mismatch_stand(tree, views, node, chance, verdict)) {
        verdict.corrected = true;
        verdict.costs.push_back({.kl = 0, .total_variation = 0, .deferral = 1});
        verdict.next =
            chance.categorical(verdict.next_prob, {tree.n_committed(), node, Purpose::residual});
        return;
      }
      node = verdict.path.back();
    }
    verdict.corrected = false;
    verdict.costs.emplace_back();
    verdict.next_prob.assign(views.target(node));
    verdict.next =
        chance.categorical(verdict.next_prob, {tree.n_committed(), node, Purpose::bonus});
  }

 private:
  // Whether a child of `node` is accepted after the exact rule has rejected all of them. If so, the
  // child and its window are appended to the path.
  bool let_mismatch_stand(const DraftTree& tree, NodeViews& views, int node, Chance& chance,
                          Verdict& verdict) const {
    if (!Steps::is_unsure(views.raw_target(node), limits_)) return false;
    const std::size_t n_before = verdict.path.size();
    for (int child = tree.next_child(node, node); child >= 0;
         child = tree.next_child(node, child)) {
      if (!Steps::is_allowed(views, node, tree.node(child).token)) continue;
      verdict.path.push_back(child);
      if (Steps::is_enough(walk_window(tree, views, chance, verdict), limits_)) {
        const double prob = views.target(node).prob(tree.node(child).token);
        verdict.costs.push_back(
            {.kl = -portable_log(prob), .total_variation = 1 - prob, .deferral = 0});
        verdict.costs.resize(verdict.path.size());
        return true;
      }
      verdict.path.resize(n_before);
    }
    return false;
  }

  // Appends the nodes that the exact rule accepts after the end of the path, at most a window;
  // returns their number.
  int walk_window(const DraftTree& tree, NodeViews& views, Chance& chance, Verdict& verdict) const {
    Distribution& left = verdict.judged[0].rule_prob;
    int n = 0;
    for (; n < limits_.window; ++n) {
      const int node = verdict.path.back();
      int child = tree.next_child(node, node);
      if (child < 0) break;
      left.assign(views.target(node));
      child = first_accepted<MultiRoundSteps>(tree, child, left, verdict.proposal, chance);
      if (child < 0) break;
      verdict.path.push_back(child);
    }
    return n;
  }

  FlyLimits limits_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_ACCEPTANCES_FLY_H_
