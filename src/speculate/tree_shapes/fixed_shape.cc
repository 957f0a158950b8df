// SPDX-License-Identifier: Apache-2.0
#include "speculate/tree_shapes/fixed_shape.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace outrider {

FixedShape::FixedShape(std::span<const int> n_children, Siblings siblings) : siblings_(siblings) {
  places_.resize(1);
  std::vector<int> depths(1, 0);
  for (std::size_t place = 0; place < n_children.size(); ++place) {
    places_[place] = {.count = n_children[place], .first_place = static_cast<int>(places_.size())};
    for (int child = 0; child < n_children[place]; ++child) {
      places_.emplace_back();
      depths.push_back(depths[place] + 1);
    }
  }
  depth_ = depths.back();
}

TreeShape::Children FixedShape::children(const GrowingNode& node, int n_nodes) const {
  Children children = places_[static_cast<std::size_t>(node.place)];
  children.count = std::clamp(n_nodes + 1 - children.first_place, 0, children.count);
  return children;
}

void FixedShape::choose_frontier(std::span<const GrowingNode> nodes, int first, int n_nodes,
                                 std::vector<int>& frontier) const {
  frontier.clear();
  for (auto index = static_cast<std::size_t>(first); index < nodes.size(); ++index) {
    if (nodes[index].open && children(nodes[index], n_nodes).count > 0) {
      frontier.push_back(static_cast<int>(index));
    }
  }
}

std::shared_ptr<const TreeShape> chain_shape(int length) {
  return std::make_shared<FixedShape>(std::vector<int>(static_cast<std::size_t>(length), 1));
}

std::vector<int> widths_tree(std::span<const int> widths) {
  std::vector<int> n_children;
  std::size_t n_in_level = 1;
  for (const int width : widths) {
    n_children.insert(n_children.end(), n_in_level, width);
    n_in_level *= static_cast<std::size_t>(width);
  }
  return n_children;
}

// One row per level: the numbers of children of that level's nodes, from the root on.
std::span<const int> eagle1_tree() {
  static constexpr std::array kTree = {4,                       //
                                       3, 2, 2, 1,              //
                                       3, 2, 2, 1, 0, 0, 0, 0,  //
                                       3, 0, 0, 0, 0, 0, 0, 0,  //
                                       2};
  return kTree;
}

std::span<const int> medusa_tree() {
  static constexpr std::array kTree = {10,                             //
                                       10, 7, 3, 2, 1, 1, 1, 1, 1, 1,  //
                                       10, 3, 2, 1, 1, 1, 1, 1, 0, 0,  // after rank 0
                                       2,  0, 0, 0, 0, 0, 0,           // after rank 1
                                       1,  0, 0,                       // after rank 2
                                       0,  0, 0, 0, 0, 0, 0, 0,        // after the others
                                       2};
  return kTree;
}

std::span<const int> recycling_tree() {
  static constexpr std::array kTree = {8,                             //
                                       8, 4, 3, 2, 1, 1, 1, 1,        //
                                       8, 3, 2, 1, 1, 1, 1, 1,        // after rank 0
                                       2, 1, 0, 0,                    // after rank 1
                                       1, 0, 0,                       // after rank 2
                                       1, 0, 1, 1, 0, 0,              // after the others
                                       5, 2, 1, 1, 1, 0, 0, 0,        // after ranks 0, 0
                                       1, 0, 0, 1, 0, 0, 0, 0, 0, 0,  // after 0 and another
                                       1, 0, 0, 1, 1, 0, 0,           // after the others
                                       3, 1, 1, 0, 0,                 // after ranks 0, 0, 0
                                       1, 0, 0, 0, 0, 1, 0, 1, 0, 0,  // after the others
                                       2, 0, 0, 1};
  return kTree;
}

}  // namespace outrider
