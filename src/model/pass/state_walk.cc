// SPDX-License-Identifier: Apache-2.0
#include "model/pass/state_walk.h"

#include <algorithm>
#include <utility>

namespace outrider {

void StateWalks::prepare(std::span<const PassRow> rows) {
  parts_.clear();
  visits_.clear();
  n_slots_ = 0;
  for (std::size_t first = 0; first < rows.size();) {
    std::size_t end = first + 1;
    while (end < rows.size() && rows[end].sequence == rows[first].sequence) ++end;
    add(rows.subspan(first, end - first), static_cast<int>(first));
    first = end;
  }
}

StateWalks::Walk StateWalks::walk(int index) const {
  const Part& part = parts_[static_cast<std::size_t>(index)];
  return {part.sequence, std::span(visits_).subspan(part.first_visit, part.n_visits)};
}

void StateWalks::add(std::span<const PassRow> rows, int first_row) {
  const KvSequence* const sequence = rows.front().sequence;
  const int first_node = rows.front().node;
  const int n_nodes = first_node + static_cast<int>(rows.size());
  nodes_.assign(static_cast<std::size_t>(n_nodes) + 1, Node{});
  // A parent's number is below its children's, so all children are counted before it.
  for (int i = n_nodes - 1; i >= 0; --i) {
    Node& node = nodes_[static_cast<std::size_t>(i)];
    const bool is_row = i >= first_node;
    if (!is_row && node.n_below == 0) continue;
    ++node.n_below;
    const int above =
        is_row ? rows[static_cast<std::size_t>(i - first_node)].parent : sequence->parent(i);
    Node& parent = nodes_[static_cast<std::size_t>(above < 0 ? n_nodes : above)];
    parent.n_below += node.n_below;
    int lighter = i;
    if (parent.heaviest < 0 ||
        nodes_[static_cast<std::size_t>(parent.heaviest)].n_below < node.n_below) {
      lighter = std::exchange(parent.heaviest, i);
    }
    if (lighter < 0) continue;
    nodes_[static_cast<std::size_t>(lighter)].next_sibling =
        std::exchange(parent.first_child, lighter);
  }
  const std::size_t first_visit = visits_.size();
  visit_all(first_node, first_row);
  parts_.push_back({sequence, first_visit, visits_.size() - first_visit});
}

void StateWalks::visit_all(int first_node, int first_row) {
  const auto push = [&](int node, int from, int to) {
    stack_.push_back({node, node < first_node ? -1 : first_row + node - first_node, from, to});
  };
  // A stack: the child pushed first is visited last.
  const auto push_children = [&](const Node& node, int from, int to_heaviest, int to_others) {
    if (node.heaviest >= 0) push(node.heaviest, from, to_heaviest);
    for (int child = node.first_child; child >= 0;
         child = nodes_[static_cast<std::size_t>(child)].next_sibling) {
      push(child, from, to_others);
    }
  };
  stack_.clear();
  push_children(nodes_.back(), kKept, 0, 0);
  while (!stack_.empty()) {
    const Visit visit = stack_.back();
    stack_.pop_back();
    visits_.push_back(visit);
    n_slots_ = std::max(n_slots_, visit.to + 1);
    push_children(nodes_[static_cast<std::size_t>(visit.node)], visit.to, visit.to, visit.to + 1);
  }
}

}  // namespace outrider
