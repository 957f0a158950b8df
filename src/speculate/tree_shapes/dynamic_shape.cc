// SPDX-License-Identifier: Apache-2.0
#include "speculate/tree_shapes/dynamic_shape.h"

#include <algorithm>
#include <cstddef>

namespace outrider {
namespace {

// Keeps the `count` likeliest of the listed nodes, in ascending order.
void keep_likeliest(std::span<const GrowingNode> nodes, int count, std::vector<int>& listed) {
  const auto wanted = static_cast<std::size_t>(std::max(count, 0));
  if (listed.size() > wanted) {
    std::nth_element(listed.begin(), listed.begin() + static_cast<std::ptrdiff_t>(wanted),
                     listed.end(), [nodes](int a, int b) {
                       const double one = nodes[static_cast<std::size_t>(a)].log_prob;
                       const double other = nodes[static_cast<std::size_t>(b)].log_prob;
                       return one != other ? one > other : a < b;
                     });
    listed.resize(wanted);
  }
  std::sort(listed.begin(), listed.end());
}

}  // namespace

void DynamicShape::choose_frontier(std::span<const GrowingNode> nodes, int first, int,
                                   std::vector<int>& frontier) const {
  frontier.clear();
  for (auto index = static_cast<std::size_t>(first); index < nodes.size(); ++index) {
    if (nodes[index].open) frontier.push_back(static_cast<int>(index));
  }
  keep_likeliest(nodes, limits_.top_k, frontier);
}

bool DynamicShape::choose_kept(std::span<const GrowingNode> nodes, int n_nodes,
                               std::vector<int>& kept) const {
  kept.clear();
  for (std::size_t index = 1; index < nodes.size(); ++index) {
    kept.push_back(static_cast<int>(index));
  }
  keep_likeliest(nodes, std::min(limits_.total, n_nodes), kept);
  kept.insert(kept.begin(), 0);
  return true;
}

}  // namespace outrider
