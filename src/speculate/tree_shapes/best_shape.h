// SPDX-License-Identifier: Apache-2.0
// A tree of the likeliest paths.
//
// Source: "DDTree" (arXiv 2604.12989): of all paths within the depth, the `nodes` with the highest
// probability by the drafter. A path is never likelier than its beginning, so these form a tree. If
// the drafter's probabilities are right, no other tree of as many nodes has more accepted tokens in
// expectation. In the source the drafter's distributions are the same after all nodes of a level;
// here each node may have its own, known once the node has been expanded.
//
// The tree grows best first, some nodes at a time. Every unseen path lies after an unexpanded node
// and is no likelier. So the likeliest of these has its final rank, and each step makes at least
// one node final. Expanding further nodes in a step saves steps and does not change which nodes
// stay.
#ifndef OUTRIDER_SPECULATE_TREE_SHAPES_BEST_SHAPE_H_
#define OUTRIDER_SPECULATE_TREE_SHAPES_BEST_SHAPE_H_

#include <span>
#include <vector>

#include "speculate/tree_shapes/tree_shape.h"

namespace outrider {

// Nodes are chosen by their value, so all are point masses. Among equal paths: the shorter first,
// then the one with the lower id where they part. At most kMaxDraftNodes are expanded, root
// included. A drafter that cannot mix levels expands all nodes of a level that could still stay. If
// these are more than half of the remaining ones, it expands the likeliest, and the result may lack
// a likely path.
class BestShape final : public TreeShape {
 public:
  struct Limits {
    int nodes = 60;
    int depth = kDeepestDraft;
  };
  // 1 to kMaxDraftNodes nodes, depth at least 1.
  explicit BestShape(const Limits& limits) : limits_(limits) {}

  int depth() const override { return limits_.depth; }
  int n_nodes() const override { return limits_.nodes; }
  bool is_chain() const override { return limits_.nodes == 1; }
  Siblings siblings() const override { return Siblings::top_ranks; }
  bool uses_log_prob() const override { return true; }
  bool mixes_levels() const override { return true; }
  int n_likeliest(int n_nodes) const override;
  Children children(const GrowingNode&, int n_nodes) const override {
    return {.count = n_likeliest(n_nodes)};
  }
  void choose_frontier(std::span<const GrowingNode> nodes, int first, int n_nodes,
                       std::vector<int>& frontier) const override;
  bool choose_kept(std::span<const GrowingNode> nodes, int n_nodes,
                   std::vector<int>& kept) const override;

 private:
  Limits limits_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_TREE_SHAPES_BEST_SHAPE_H_
