// Proposed tokens as a tree rooted at the last committed token. A chain is a tree of width 1.
#ifndef OUTRIDER_SPECULATE_DRAFT_TREE_H_
#define OUTRIDER_SPECULATE_DRAFT_TREE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "outrider/types.h"
#include "sampling/distribution.h"

namespace outrider {

// A child's proposal when it was not drawn from a distribution but named outright.
inline constexpr int kPointMass = -1;
// A node whose drafter gives no distribution.
inline constexpr int kNoDistribution = -1;

struct DraftNode {
  TokenId token = kNoToken;
  int parent = -1;                   // -1 for the root alone; a parent precedes its children
  int depth = 0;                     // 0 for the root
  int proposal = kPointMass;         // the law this token was really drawn from
  int draft_prob = kNoDistribution;  // the drafter's distribution of what follows this node
};

// Invariants: node 0 is the root, the last committed token; children of a node stand in the order
// in which they were drawn; that order, and every sampled child, is kept (sorting sampled siblings,
// or dropping one because of its value, makes verification biased: docs/architecture.md). Storage
// is kept from round to round. Not thread-safe.
class DraftTree {
 public:
  // Starts over: `root` is the last of n_committed tokens.
  void reset(TokenId root, std::int64_t n_committed);

  // Room for a distribution, empty, to be filled by the caller; valid until the next one is made.
  int add_distribution();
  Distribution& distribution(int index) { return distributions_[static_cast<std::size_t>(index)]; }
  const Distribution& distribution(int index) const {
    return distributions_[static_cast<std::size_t>(index)];
  }

  // Appends a child of `parent`, drawn after its earlier siblings; returns its ordinal.
  int add_child(int parent, TokenId token, int proposal);
  void set_draft_prob(int node, int distribution);

  std::span<const DraftNode> nodes() const { return nodes_; }
  const DraftNode& node(int index) const { return nodes_[static_cast<std::size_t>(index)]; }
  int n_nodes() const { return static_cast<int>(nodes_.size()); }
  int n_drafted() const { return n_nodes() - 1; }

  // The law that a node's token was drawn from; a point mass is built in `storage`.
  const Distribution& proposal_prob(int node, Distribution& storage) const;

  // The next child of `parent` after the node `after` (the first for after = parent); -1: no more.
  int next_child(int parent, int after) const;
  bool is_chain() const;

  // The tokens from the root (excluded) to `node`; `path` is overwritten.
  void path_tokens(int node, std::vector<TokenId>& path) const;

  // Tokens committed when the round began, the root included: the position of the root's children.
  std::int64_t n_committed() const { return n_committed_; }

 private:
  std::vector<DraftNode> nodes_;
  std::vector<Distribution> distributions_;  // the first n_distributions_ are in use
  int n_distributions_ = 0;
  std::int64_t n_committed_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFT_TREE_H_
