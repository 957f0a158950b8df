// SPDX-License-Identifier: Apache-2.0
// A shape of limits only, for drafters that choose their own trees, such as indices over text.
#ifndef OUTRIDER_SPECULATE_TREE_SHAPES_OPEN_SHAPE_H_
#define OUTRIDER_SPECULATE_TREE_SHAPES_OPEN_SHAPE_H_

#include <memory>

#include "speculate/tree_shapes/tree_shape.h"

namespace outrider {

// At most `depth` >= 0 levels and `n_nodes` >= depth nodes, without further conditions. A drafter
// that grows its tree by shapes (tree_growth.h) gets a chain of `depth` from it.
class OpenShape final : public TreeShape {
 public:
  OpenShape(int depth, int n_nodes) : depth_(depth), n_nodes_(n_nodes) {}

  int depth() const override { return depth_; }
  int n_nodes() const override { return n_nodes_; }
  bool is_chain() const override { return n_nodes_ <= 1; }
  Siblings siblings() const override { return Siblings::without_replacement; }
  Children children(const GrowingNode& node, int) const override {
    return {.count = node.place < depth_ ? 1 : 0, .first_place = node.place + 1};
  }
  void choose_frontier(std::span<const GrowingNode> nodes, int first, int,
                       std::vector<int>& frontier) const override {
    frontier.clear();
    for (int node = first; node < static_cast<int>(nodes.size()); ++node) {
      if (nodes[static_cast<std::size_t>(node)].open) frontier.push_back(node);
    }
  }
  bool choose_kept(std::span<const GrowingNode>, int, std::vector<int>&) const override {
    return false;
  }

 private:
  int depth_;
  int n_nodes_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_TREE_SHAPES_OPEN_SHAPE_H_
