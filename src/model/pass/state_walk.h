// In which order a pass goes over the nodes of its sequences where each node's state is made of its
// parent's, and which states are there at a time.
//
// A walk visits the rows of one sequence, and the pending nodes of earlier passes that are their
// ancestors, each once, parents first. A state stands in a slot. Of a node's children the one with
// the most nodes below comes last and takes its parent's slot; the others take the next one. So
// every further slot holds at most half as many nodes: n nodes take log2(n) + 1 slots.
//
// Reused from pass to pass: allocates only while passes grow. Not thread-safe.
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

  // Of rows that are laid out and not appended yet. May throw std::bad_alloc.
  void lay_out(std::span<const PassRow> rows);

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

  // Of one sequence, by node; behind the last one stands the kept token.
  struct Node {
    int n_below = 0;       // nodes to be visited, with itself
    int heaviest = -1;     // the child with the most
    int first_child = -1;  // the others
    int next_sibling = -1;
  };
  std::vector<Node> nodes_;
  std::vector<Visit> stack_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_STATE_WALK_H_
