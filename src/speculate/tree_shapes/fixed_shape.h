// SPDX-License-Identifier: Apache-2.0
// Shapes known before the draft begins: chains, trees of given widths, and trees given by the ranks
// of their nodes.
#ifndef OUTRIDER_SPECULATE_TREE_SHAPES_FIXED_SHAPE_H_
#define OUTRIDER_SPECULATE_TREE_SHAPES_FIXED_SHAPE_H_

#include <memory>
#include <span>
#include <vector>

#include "speculate/tree_shapes/tree_shape.h"

namespace outrider {

// Places are numbered level by level from the root, 0; the children of one place have consecutive
// numbers in the order of proposal. If fewer nodes are allowed than the shape has, the last places
// stay empty. A draw that runs out of tokens, or a stop rule that ends a path, never moves another
// node to a different place.
class FixedShape final : public TreeShape {
 public:
  // n_children[place]; places left out at the end have none. The sum of the first n entries must be
  // at least n - 1 for every n up to the size, so that every listed place exists.
  explicit FixedShape(std::span<const int> n_children,
                      Siblings siblings = Siblings::without_replacement);

  int depth() const override { return depth_; }
  int n_nodes() const override { return static_cast<int>(places_.size()) - 1; }
  bool is_chain() const override { return depth_ == n_nodes(); }
  Siblings siblings() const override { return siblings_; }
  Children children(const GrowingNode& node, int n_nodes) const override;
  void choose_frontier(std::span<const GrowingNode> nodes, int first, int n_nodes,
                       std::vector<int>& frontier) const override;
  bool choose_kept(std::span<const GrowingNode>, int, std::vector<int>&) const override {
    return false;
  }

 private:
  std::vector<Children> places_;
  int depth_ = 0;
  Siblings siblings_;
};

// A chain of `length` >= 0 tokens.
std::shared_ptr<const TreeShape> chain_shape(int length);

// Every node at depth d has widths[d] children, as in SpecInfer (Miao et al., 2024), section 3.
std::vector<int> widths_tree(std::span<const int> widths);

// The tree of EAGLE (Li et al., 2024), figure 8 as published in its code: 25 nodes, depth 5.
std::span<const int> eagle1_tree();
// The tree of Medusa (Cai et al., 2024) for Vicuna-7B, "mc_sim_7b_63" in its code: 63 nodes, depth
// 4.
std::span<const int> medusa_tree();
// The tree of Token Recycling (Luo et al., arXiv:2408.08696), "2.2.2" in its code: 80 nodes, depth
// 6, for rows of eight candidates.
std::span<const int> recycling_tree();

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_TREE_SHAPES_FIXED_SHAPE_H_
