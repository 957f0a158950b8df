// The tokens of one sequence, as places: how many are kept, and the tree of its pending nodes. No
// bytes and no layers.
//
// Slots are numbered: kept token i stands in slot i; pending node j, in the order in which nodes
// came, in slot n_kept() + j. Keeping a path moves its nodes to the slots behind the kept tokens:
// the tree says which moves that takes, and whoever has the bytes makes them.
//
// Not thread-safe.
#ifndef OUTRIDER_MODEL_CACHE_TOKEN_TREE_H_
#define OUTRIDER_MODEL_CACHE_TOKEN_TREE_H_

#include <span>
#include <vector>

namespace outrider {

// What stands in slot `from` goes to slot `to`, which is before it.
struct SlotMove {
  int from;
  int to;
};

class TokenTree {
 public:
  int n_kept() const { return n_kept_; }
  int n_pending() const { return static_cast<int>(parents_.size()); }
  int n_slots() const { return n_kept_ + n_pending(); }

  // append() and keep() allocate nothing for so many further nodes. May throw std::bad_alloc.
  void reserve(int n_new);
  // A pending node in the next slot. parent: -1 (the last kept token) or an earlier node's index.
  // After reserve().
  void append(int parent);

  int parent(int node) const { return parents_[static_cast<std::size_t>(node)]; }
  int depth(int node) const { return depths_[static_cast<std::size_t>(node)]; }

  // What a pending node attends to: the kept tokens, its ancestors and itself, n_kept() + depth + 1
  // positions. Of these the first so many are slots of that number ...
  int n_in_place(int node) const;
  // ... and the others stand in these: in order of position, one each.
  void others(int node, std::span<int> slots) const;

  // The moves that keep(path) takes, to be made in this order: none writes to a slot that a later
  // one reads. They write to the slots from the first move's `to` up to n_kept() + path.size().
  // Changes nothing; valid until the next call. Throws Error unless the path is one: each node the
  // parent of the next, the first a child of the last kept token.
  std::span<const SlotMove> moves_to_keep(std::span<const int> path);
  // After moves_to_keep(path), with n = path.size(): these are kept, all other nodes are gone.
  void keep(int n);

  // Only the first n_tokens kept tokens are left, and no node. 0 <= n_tokens <= n_kept().
  void rewind(int n_tokens);

  // Of an empty tree: so many tokens are kept.
  void begin_with(int n_kept) { n_kept_ = n_kept; }

  // The kept tokens alone: their slots are the same.
  TokenTree fork() const;

 private:
  int n_kept_ = 0;
  std::vector<int> parents_;     // (n_pending)
  std::vector<int> depths_;      // (n_pending); a child of the last kept token has depth 0
  std::vector<SlotMove> moves_;  // of the last moves_to_keep
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CACHE_TOKEN_TREE_H_
