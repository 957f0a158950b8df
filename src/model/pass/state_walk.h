// SPDX-License-Identifier: Apache-2.0
// The order in which a pass visits the nodes of its sequences if each node's state is computed from
// its parent's, and which states are stored at a time.
//
// A walk visits the rows of one sequence, and their ancestors among the pending nodes of earlier
// passes, each once, parents first. A state is stored in a slot. Among a node's children the one
// with the most nodes below comes last and takes its parent's slot; the others take the next slot.
// So every further slot holds at most half as many nodes: n nodes need log2(n) + 1 slots.
//
// Reused between passes: allocates only while passes grow. Not thread-safe.
#ifndef OUTRIDER_MODEL_PASS_STATE_WALK_H_
#define OUTRIDER_MODEL_PASS_STATE_WALK_H_

#include <cstddef>
#include <span>
#include <vector>

#include "model/pass/pass_plan.h"

namespace outrider {

class StateWalks {
 public:
  struct Visit {
    int node;
    int row;   // of the pass; -1: of an earlier one
    int from;  // slot of the parent's state; kKept: the sequence's
    int to;
  };
  static constexpr int kKept = -1;
  struct Walk {
    const KvSequence* sequence;
    std::span<const Visit> visits;
  };

  // For rows that are laid out but not appended yet. May throw std::bad_alloc.
  void prepare(std::span<const PassRow> rows);

  int n_walks() const { return static_cast<int>(parts_.size()); }
  Walk walk(int index) const;
  int n_slots() const { return n_slots_; }

 private:
  void add(std::span<const PassRow> rows, int first_row);
  void visit_all(int first_node, int first_row);

  struct Part {
    const KvSequence* sequence;
    std::size_t first_visit;
    std::size_t n_visits;
  };
  std::vector<Part> parts_;
  std::vector<Visit> visits_;
  int n_slots_ = 0;

  // Per sequence, by node; the entry after the last one is the kept token.
  struct Node {
    int n_below = 0;       // nodes to be visited, including itself
    int heaviest = -1;     // the child with the most nodes below
    int first_child = -1;  // its other children
    int next_sibling = -1;
  };
  std::vector<Node> nodes_;
  std::vector<Visit> stack_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_STATE_WALK_H_
