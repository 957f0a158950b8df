// SPDX-License-Identifier: Apache-2.0
// A tree whose shape follows the drafter's confidence.
//
// Source: Li, Wei, Zhang, Zhang, "EAGLE-2: Faster Inference of Language Models with Dynamic Draft
// Trees" (2024), section 4. Every level expands the `top_k` nodes with the likeliest whole paths
// into `top_k` children each. When the tree is `depth` deep, all nodes are ranked by that
// probability, and the best `total` stay. A path is never likelier than its beginning, so these
// form a tree.
//
// The published figures count the root among the nodes; here it does not count, as everywhere.
#ifndef OUTRIDER_SPECULATE_TREE_SHAPES_DYNAMIC_SHAPE_H_
#define OUTRIDER_SPECULATE_TREE_SHAPES_DYNAMIC_SHAPE_H_

#include <span>
#include <vector>

#include "speculate/tree_shapes/tree_shape.h"

namespace outrider {

// Nodes are chosen by their value, so all are point masses. Among equal paths: the lowest ordinal
// first.
class DynamicShape final : public TreeShape {
 public:
  struct Limits {
    int total = 60;
    int depth = 7;
    int top_k = 10;
  };
  explicit DynamicShape(const Limits& limits) : limits_(limits) {}  // each at least 1

  int depth() const override { return limits_.depth; }
  int n_nodes() const override { return limits_.total; }
  bool is_chain() const override { return limits_.top_k == 1; }
  Siblings siblings() const override { return Siblings::top_ranks; }
  bool uses_log_prob() const override { return true; }
  Children children(const GrowingNode&, int) const override { return {.count = limits_.top_k}; }
  void choose_frontier(std::span<const GrowingNode> nodes, int first, int n_nodes,
                       std::vector<int>& frontier) const override;
  bool choose_kept(std::span<const GrowingNode> nodes, int n_nodes,
                   std::vector<int>& kept) const override;

 private:
  Limits limits_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_TREE_SHAPES_DYNAMIC_SHAPE_H_
