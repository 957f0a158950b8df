// FLy: a mismatch may stand. The draft is judged by the exact rule, down the tree (multi_round.h).
// Where no child of a node stands, the first child that passes all of these stands all the same:
//   the target is unsure there:  -(sum of p log p over its `top` likeliest tokens) >= entropy,
//   the request allows it:       it has a target probability above 0,
//   the target goes along:       behind it, the exact rule lets `window` more tokens stand.
// The window stands with it. Where a draft ends within the window, nothing is known of what the
// target would have done, and the exact rule holds: of drafts of at most `window` tokens, and of
// all where `entropy` is out of reach, text and draws are the exact rule's own.
//
// What a mismatch needs to stand lies behind it, so that this looks ahead and is no rule: the text
// does not follow the target's law, nor any other that could be named. At temperature 0, tokens
// that stand and are not the target's are what rule_tv counts.
//
// The entropy is that of the raw distribution, so that it means something at temperature 0. Where a
// request leaves the target a single token, as temperature 0 does, it is the raw probability that
// has to be above 0: what a grammar or a bias rules out never stands, nor, elsewhere, what top-k,
// top-p or min-p cut off.
//
// Source: Li et al., "Training-Free Loosely Speculative Decoding: Accepting Semantically Correct
// Drafts Beyond Exact Match" (arXiv 2511.22972). The paper has chains, and at temperature 0 the
// match with the target's likeliest token for the exact rule. The truncated entropy is that of the
// authors' program and of vLLM.
#ifndef OUTRIDER_SPECULATE_FLY_H_
#define OUTRIDER_SPECULATE_FLY_H_

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "base/elementary.h"
#include "sampling/divergence.h"
#include "speculate/acceptance.h"
#include "speculate/multi_round.h"

namespace outrider {

struct FlyLimits {
  static constexpr int kMostTop = 64;

  double entropy = 0.3;  // nats
  int top = 3;           // from 1 to kMostTop: of how many tokens the entropy is
  int window = 6;        // tokens, 1 or more
};

// Each step replaceable on its own, so that a test can break one.
struct FlySteps {
  // Whether the target is unsure.
  static bool is_unsure(const Distribution& raw_target, const FlyLimits& limits) {
    std::array<double, FlyLimits::kMostTop> room;
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
  int least_depth() const override { return limits_.window + 1; }

  void verify(const DraftTree& tree, NodeViews& views, Chance& chance,
              Verdict& verdict) const override {
    verdict.path.clear();
    verdict.costs.clear();
    if (verdict.judged.empty()) verdict.judged.resize(1);
    int node = 0;
    for (int child = tree.next_child(node, node); child >= 0; child = tree.next_child(node, node)) {
      verdict.next_prob.become(views.target(node));
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
    verdict.next_prob.become(views.target(node));
    verdict.next =
        chance.categorical(verdict.next_prob, {tree.n_committed(), node, Purpose::bonus});
  }

 private:
  // Whether a child of `node` stands though the exact rule has refused all of them; then it and its
  // window are the end of the path.
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

  // Appends what the exact rule lets stand behind the end of the path, the window at most; returns
  // how many tokens these are.
  int walk_window(const DraftTree& tree, NodeViews& views, Chance& chance, Verdict& verdict) const {
    Distribution& left = verdict.judged[0].rule_prob;
    int n = 0;
    for (; n < limits_.window; ++n) {
      const int node = verdict.path.back();
      int child = tree.next_child(node, node);
      if (child < 0) break;
      left.become(views.target(node));
      child = first_accepted<MultiRoundSteps>(tree, child, left, verdict.proposal, chance);
      if (child < 0) break;
      verdict.path.push_back(child);
    }
    return n;
  }

  FlyLimits limits_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_FLY_H_
