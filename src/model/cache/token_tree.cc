// SPDX-License-Identifier: Apache-2.0
#include "model/cache/token_tree.h"

#include <fmt/format.h>

#include <cstddef>

#include "model/cache/grow_ahead.h"
#include "outrider/error.h"

namespace outrider {

void TokenTree::reserve(int n_new) {
  const auto n_nodes = parents_.size() + static_cast<std::size_t>(n_new);
  reserve_ahead(parents_, n_nodes);
  reserve_ahead(depths_, n_nodes);
  reserve_ahead(moves_, n_nodes);
}

void TokenTree::append(int parent) {
  parents_.push_back(parent);
  depths_.push_back(parent < 0 ? 0 : depth(parent) + 1);
}

int TokenTree::n_contiguous(int node) const {
  // A node's number is at least its depth. If equal, the same holds for its ancestors.
  while (node >= 0 && node != depth(node)) node = parent(node);
  return n_kept_ + node + 1;
}

void TokenTree::scattered_slots(int node, std::span<int> slots) const {
  // Follows the path backwards, from the node to its ancestors.
  for (std::size_t i = slots.size(); i > 0; --i, node = parent(node)) slots[i - 1] = n_kept_ + node;
}

std::span<const SlotMove> TokenTree::moves_to_keep(std::span<const int> path) {
  int last = -1;
  moves_.clear();
  for (std::size_t i = 0; i < path.size(); ++i) {
    const int node = path[i];
    if (node < 0 || node >= n_pending()) {
      throw Error("keep", "path",
                  n_pending() == 0 ? "no nodes (none is pending)"
                                   : fmt::format("pending nodes, 0 to {}", n_pending() - 1),
                  fmt::format("{}", node));
    }
    if (parent(node) != last) {
      throw Error("keep", "path", fmt::format("a child of {}", last),
                  fmt::format("{}, whose parent is {}", node, parent(node)));
    }
    last = node;
    // A node's number is at least its place in the path. If equal, nothing moves.
    const int place = static_cast<int>(i);
    if (node != place) moves_.push_back({.from = n_kept_ + node, .to = n_kept_ + place});
  }
  return moves_;
}

void TokenTree::keep(int n) {
  n_kept_ += n;
  parents_.clear();
  depths_.clear();
}

void TokenTree::rewind(int n_tokens) {
  n_kept_ = n_tokens;
  parents_.clear();
  depths_.clear();
}

TokenTree TokenTree::fork() const {
  TokenTree copy;
  copy.n_kept_ = n_kept_;
  return copy;
}

}  // namespace outrider
