// SPDX-License-Identifier: Apache-2.0
// The best fixed tree for given acceptance rates and costs.
//
// Source: Chen, May, Svirschevski et al., "Sequoia: Scalable, Robust, and Hardware-aware
// Speculative Decoding" (2024), section 4.1. Assume that the child of rank k of an accepted node is
// accepted with probability a_k at every node. A tree then accepts the sum over its nodes of the
// products of a along their paths, and dynamic programming finds the best tree of a size and depth.
// With
//   T(n, d) = the largest such sum over trees of n nodes, root counted, at most d deep
//   F(n, d, k) = the same over n nodes after one node, in subtrees of the children from rank k on
// T(n, d) = 1 + F(n - 1, d - 1, 0) and F(n, d, k) = max over m of a_k T(m, d) + F(n - m, d, k + 1).
#ifndef OUTRIDER_SPECULATE_TREE_SHAPES_SEQUOIA_TREE_H_
#define OUTRIDER_SPECULATE_TREE_SHAPES_SEQUOIA_TREE_H_

#include <span>
#include <vector>

namespace outrider {

// The cost of a round, in any one unit of time.
struct RoundCosts {
  double draft_level = 0;               // one pass of the drafter: one level of the tree
  std::span<const double> target_pass;  // [n]: the target's pass over the root and n drafted nodes
};

struct PlannedTree {
  std::vector<int>
      n_children;  // by place, in the form that FixedShape takes; empty: no draft is worth its cost
  double tau = 1;  // expected tokens a round: accepted ones and the verifier's own
  double cost_per_token = 0;
};

// The tree of least cost per token among those of at most target_pass.size() - 1 drafted nodes and
// `depth` levels, depth >= 0. accept_by_rank[k] is the probability that the child of rank k of an
// accepted node is the accepted one; the sum is at most 1. Among equal costs: the smaller tree,
// then the shallower. target_pass has at least one entry, all positive. Takes time in the order of
// nodes^2 * depth * ranks. Pure; thread-safe.
PlannedTree plan_sequoia_tree(std::span<const double> accept_by_rank, int depth,
                              const RoundCosts& costs);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_TREE_SHAPES_SEQUOIA_TREE_H_
