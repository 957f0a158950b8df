// SPDX-License-Identifier: Apache-2.0
// The tokens of one sequence as slots: the number of kept tokens, and the tree of pending nodes. It
// holds no bytes and no layers.
//
// Kept token i is in slot i; pending node j, in the order of append(), is in slot n_kept() + j.
// Keeping a path moves its nodes to the slots after the kept tokens: the tree returns the moves,
// and the owner of the bytes makes them.
//
// Not thread-safe.
#ifndef OUTRIDER_MODEL_CACHE_TOKEN_TREE_H_
#define OUTRIDER_MODEL_CACHE_TOKEN_TREE_H_

#include <span>
#include <vector>

namespace outrider {

// Moves the contents of slot `from` to the earlier slot `to`.
struct SlotMove {
  int from;
  int to;
};

class TokenTree {
 public:
  int n_kept() const { return n_kept_; }
  int n_pending() const { return static_cast<int>(parents_.size()); }
  int n_slots() const { return n_kept_ + n_pending(); }

  // append() and keep() allocate nothing for n_new further nodes. May throw std::bad_alloc.
  void reserve(int n_new);
  // Adds a pending node in the next slot. parent: -1 (the last kept token) or an earlier node's
  // index. Call reserve() first.
  void append(int parent);

  int parent(int node) const { return parents_[static_cast<std::size_t>(node)]; }
  int depth(int node) const { return depths_[static_cast<std::size_t>(node)]; }

  // A pending node attends to the kept tokens, its ancestors and itself: n_kept() + depth + 1
  // positions. For the first n_contiguous() of these, slot and position are the same ...
  int n_contiguous(int node) const;
  // ... and these are the slots of the others, one for each, in order of position.
  void scattered_slots(int node, std::span<int> slots) const;

  // The moves that keep(path) needs, to be made in this order: none writes to a slot that a later
  // one reads. They write to the slots from the first move's `to` up to n_kept() + path.size().
  // Changes nothing; valid until the next call. Throws Error unless each node is the parent of the
  // next and the first is a child of the last kept token.
  std::span<const SlotMove> moves_to_keep(std::span<const int> path);
  // Called after moves_to_keep(path), with n = path.size(): keeps these nodes and drops all others.
  void keep(int n);

  // Keeps the first n_tokens kept tokens and no node. 0 <= n_tokens <= n_kept().
  void rewind(int n_tokens);

  // For an empty tree: sets the number of kept tokens.
  void begin_with(int n_kept) { n_kept_ = n_kept; }

  // A copy of the kept tokens alone, in the same slots.
  TokenTree fork() const;

 private:
  int n_kept_ = 0;
  std::vector<int> parents_;     // (n_pending)
  std::vector<int> depths_;      // (n_pending); a child of the last kept token has depth 0
  std::vector<SlotMove> moves_;  // of the last moves_to_keep
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CACHE_TOKEN_TREE_H_
