// SPDX-License-Identifier: Apache-2.0
// Grows a draft from a drafter's distributions: level by level, in the shape that the job asks for.
// The logits may come from any model: a small model, or a head on the target's features.
#ifndef OUTRIDER_SPECULATE_TREE_SHAPES_TREE_GROWTH_H_
#define OUTRIDER_SPECULATE_TREE_SHAPES_TREE_GROWTH_H_

#include <span>
#include <vector>

#include "sampling/distribution.h"
#include "sampling/raw_probs.h"
#include "speculate/drafter.h"
#include "speculate/tree_shapes/tree_shape.h"

namespace outrider {

// Storage for penalties on a drafter's row; reused from node to node.
struct PenaltyStorage {
  std::vector<TokenId> path;
  std::vector<TokenLogit> replaced;
};

// The drafter's distributions after a node, computed from its logits there under the request's
// transform. Penalties count the committed tokens and the node's own path. These are the results of
// Drafter::draft_at(). raw_draft may be null.
void distributions_at(const Context& context, const DraftTree& tree, int node, LogitRow logits,
                      PenaltyStorage& storage, Distribution& draft_prob, Distribution* raw_draft);

// One draft under construction. Reused from draft to draft. Not thread-safe.
//
//   growth.start(job, depth);
//   while (!growth.frontier().empty()) {
//     for (int node : growth.frontier()) growth.expand(node, logits_behind(node));
//     growth.next_level();
//   }
//
// Children of a node are proposed in one of these ways:
// - Sampled from the drafter's distribution under the request's transform, with or without
//   replacement. Node n is drawn with Purpose::draft and key n. Under DraftNoise::coupled the first
//   child uses the Gumbel noise of plain sampling at its position. Drawn without replacement, its
//   siblings are the tokens of the next largest log-probabilities perturbed by the same noise,
//   which draws from that distribution in one go (Kool, van Hoof, Welling, "Stochastic Beams and
//   Where to Find Them", 2019).
// - The likeliest tokens as point masses, where the shape says so; and always where the transform
//   is greedy, since it leaves one token alone. They are ranked by the distribution under the
//   transform, or under a greedy one by the raw distribution.
class TreeGrowth {
 public:
  // Begins a draft. The job's tree holds the root alone, and the job must outlive the growth. The
  // depth of nodes is limited by `depth`, the job's budget and the shape. may_mix: the drafter can
  // expand nodes of several levels at once, if the shape asks for it.
  void start(const DraftJob& job, int depth, bool may_mix = false);

  // The nodes to expand next, ascending. Empty: the draft is complete.
  std::span<const int> frontier() const { return frontier_; }

  // Whether the shape uses path probabilities, and therefore log_trust.
  bool uses_log_prob() const { return job_->shape->uses_log_prob(); }

  // Proposes the children of a node of the frontier. `logits` are the drafter's after that node,
  // before penalties; tokens beyond the target's vocabulary are left out. log_trust: the logarithm,
  // at most 0, of a factor on the probability of all paths through the children. same_at_depth: the
  // logits are the same after all nodes of this depth; point masses then reuse those of the first
  // of these nodes, unless penalties distinguish paths.
  void expand(int node, LogitRow logits, double log_trust = 0, bool same_at_depth = false);

  // Must be called when the whole frontier has been expanded.
  void next_level();

  // For a complete draft, whose nodes may have been renumbered because some were dropped. `by_node`
  // holds a drafter's numbers for nodes in the order of growth; they become those of the nodes that
  // stayed. Nodes beyond the end of `by_node` get -1.
  void renumber(std::vector<int>& by_node) const;

 private:
  void sample(int node, int dist, TreeShape::Children children);
  // The likeliest tokens after a node.
  struct Ranks {
    struct Ranked {
      TokenId token = kNoToken;
      double log_prob = 0;  // if the shape uses it
      double raw_prob = 0;  // if there is a stop rule
    };
    int dist = kNoDistribution;  // kNoDistribution: nothing is known
    int raw_draft = kNoDistribution;
    int count = 0;  // of the tokens requested
    std::vector<Ranked> tokens;
  };
  int show_distributions(int node, LogitRow logits);
  void rank(int node, int dist, int count, LogitRow logits, Ranks& ranks);
  void take_top_ranks(int node, const Ranks& ranks, TreeShape::Children children, double log_trust);
  void add(int node, int proposal, Replacement replacement, TokenId token, double raw_prob,
           int place);
  void raise_floor();
  void finish();
  double raw_prob(int dist, TokenId token) const;

  const DraftJob* job_ = nullptr;
  int depth_ = 0;  // limit of the deepest nodes
  int level_ = 0;  // depth of the frontier's nodes, unless levels are mixed
  bool mixes_levels_ = false;
  int n_grown_ = 0;
  double floor_ = 0;                // children with a lower log_prob cannot stay
  bool needs_raw_ = false;          // the raw distribution of each node
  bool needs_raw_prob_ = false;     // that of the drafted tokens
  std::vector<GrowingNode> nodes_;  // parallel to the tree's
  std::vector<double> log_probs_;
  std::vector<int> frontier_;
  std::vector<int> origins_;  // of a complete draft: each node's number during growth

  PenaltyStorage penalties_;
  // By depth, where logits are the same at one; else only the first, of the current node.
  std::vector<Ranks> ranks_;
  std::vector<TokenId> tokens_;
  Distribution raw_;    // if needs_raw_
  RawProbs raw_probs_;  // of the node being expanded
  Distribution left_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_TREE_SHAPES_TREE_GROWTH_H_
