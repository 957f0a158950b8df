// SPDX-License-Identifier: Apache-2.0
#include "speculate/tree_shapes/best_shape.h"

#include <algorithm>
#include <cstddef>

namespace outrider {
namespace {

// Nodes per step where levels are mixed: as many as EAGLE-2 expands at a time (dynamic_shape.h).
// Fewer nodes need more steps, each a model's pass or a Markov head's product; more nodes are
// expanded in vain.
constexpr int kAtOnce = 10;

const GrowingNode& at(std::span<const GrowingNode> nodes, int node) {
  return nodes[static_cast<std::size_t>(node)];
}

// A total order of paths, independent of how the tree has grown. A node comes after its parent.
bool comes_before(std::span<const GrowingNode> nodes, int a, int b) {
  const GrowingNode* one = &at(nodes, a);
  const GrowingNode* other = &at(nodes, b);
  if (one->log_prob != other->log_prob) return one->log_prob > other->log_prob;
  if (one->depth != other->depth) return one->depth < other->depth;
  while (one->parent != other->parent) {
    one = &at(nodes, one->parent);
    other = &at(nodes, other->parent);
  }
  return one->token < other->token;
}

// Lists the first `count` nodes in this order, without the root.
void rank(std::span<const GrowingNode> nodes, int count, std::vector<int>& ranked) {
  ranked.clear();
  for (int node = 1; node < static_cast<int>(nodes.size()); ++node) ranked.push_back(node);
  const auto n_ranked =
      std::min(static_cast<std::ptrdiff_t>(std::max(count, 0)), std::ssize(ranked));
  std::partial_sort(ranked.begin(), ranked.begin() + n_ranked, ranked.end(),
                    [nodes](int a, int b) { return comes_before(nodes, a, b); });
  ranked.resize(static_cast<std::size_t>(n_ranked));
}

}  // namespace

int BestShape::n_likeliest(int n_nodes) const { return std::min(limits_.nodes, n_nodes); }

void BestShape::choose_frontier(std::span<const GrowingNode> nodes, int first, int n_nodes,
                                std::vector<int>& frontier) const {
  const int n_kept = n_likeliest(n_nodes);
  if (nodes.size() == 1) {
    frontier.assign(nodes.front().open && n_kept > 0 ? 1 : 0, 0);
    return;
  }
  // Children of the last node that is kept would not be kept.
  rank(nodes, n_kept - 1, frontier);
  const auto n_expanded = static_cast<int>(std::count_if(
      nodes.begin(), nodes.end(), [](const GrowingNode& node) { return node.expanded; }));
  int room = kMaxDraftNodes - n_expanded;
  if (first > 0) {
    room = (room + 1) / 2;  // each further level gets a share
  } else {
    const auto first_open = std::find_if(frontier.begin(), frontier.end(),
                                         [nodes](int node) { return at(nodes, node).open; });
    // Each of the nodes from the first open one on may have to be expanded, at least one per step.
    const auto n_unsure = n_kept - 1 - static_cast<int>(first_open - frontier.begin());
    room = std::min(room - n_unsure + 1, kAtOnce);
  }
  std::erase_if(frontier,
                [&](int node) { return node < first || !at(nodes, node).open || room-- <= 0; });
  std::sort(frontier.begin(), frontier.end());
}

bool BestShape::choose_kept(std::span<const GrowingNode> nodes, int n_nodes,
                            std::vector<int>& kept) const {
  rank(nodes, n_likeliest(n_nodes), kept);
  kept.push_back(0);
  std::sort(kept.begin(), kept.end());
  return true;
}

}  // namespace outrider
