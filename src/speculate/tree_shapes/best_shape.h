// A tree of the likeliest paths of all.
//
// Source: "DDTree" (arXiv 2604.12989): of all paths, as long as a draft may be, the `nodes` of the
// highest probability by the drafter. A path is never likelier than its beginning, so these are a
// tree, and no other of as many nodes is expected to have more of its tokens accepted if the
// drafter is right. There the drafter's distributions are the same behind all nodes of a level;
// here each node may have its own, which is known once the node has been expanded.
//
// The tree grows best first, some nodes at a time. What has not been seen lies behind a node that
// has not been expanded, and is no likelier: so the likeliest of these has its final rank, and each
// step makes at least one node sure. That steps take further nodes as well saves steps and changes
// nothing in what stays.
#ifndef OUTRIDER_SPECULATE_TREE_SHAPES_BEST_SHAPE_H_
#define OUTRIDER_SPECULATE_TREE_SHAPES_BEST_SHAPE_H_

#include <span>
#include <vector>

#include "speculate/tree_shape.h"

namespace outrider {

// Nodes are chosen by their value, so all are point masses. Equal paths: the shorter first, then
// the one that has the lower id where they part. At most kMostDraftNodes are expanded, the root
// among them. A drafter that cannot mix levels expands of each all nodes that could still stay; if
// these are more than half of what is left, the likeliest, and what stays may lack a likely path.
class BestShape final : public TreeShape {
 public:
  struct Limits {
    int nodes = 60;
    int depth = kDeepestDraft;
  };
  // 1 to kMostDraftNodes nodes, depth at least 1.
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
