// SPDX-License-Identifier: Apache-2.0
// Proposed tokens as a tree rooted at the last committed token. A chain is a tree of width 1.
#ifndef OUTRIDER_SPECULATE_DRAFT_TREE_H_
#define OUTRIDER_SPECULATE_DRAFT_TREE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "outrider/types.h"
#include "sampling/distribution.h"

namespace outrider {

// Proposal of a child that was named without a draw.
inline constexpr int kPointMass = -1;
// A node without a distribution of the drafter.
inline constexpr int kNoDistribution = -1;

// How a token was drawn from its proposal distribution.
enum class Replacement {
  with,     // from the distribution itself
  without,  // from the distribution without the tokens of earlier siblings drawn from
            // it in this way
};

struct DraftNode {
  TokenId token = kNoToken;
  int parent = -1;            // -1 for the root alone; a parent precedes its children
  int depth = 0;              // 0 for the root
  int proposal = kPointMass;  // the distribution of this token's draw, modified by `replacement`
  Replacement replacement = Replacement::with;
  int draft_prob = kNoDistribution;  // the drafter's distribution of the token after this node
  int raw_draft = kNoDistribution;   // the same before temperature and truncation, if requested
};

// Invariants:
// - Node 0 is the root, the last committed token.
// - Children of a node are in the order in which they were drawn.
// - That order, and every sampled child, is kept. Sorting sampled siblings, or dropping one because
//   of its value, biases verification (docs/architecture.md).
// - Each child was drawn from its distribution whatever the nodes before it are. Which node gets
//   the next child may depend on all of them.
// Storage is reused from round to round. Not thread-safe.
//
// Scratch nodes may follow the drafted nodes. The target runs them in the same pass, and the
// drafter may read their results after the round (RoundResult), but they are not verified.
// next_child() and is_chain() ignore them, so no acceptance, rule or count sees them. They have the
// last ordinals, so the keys of all draws are unchanged.
class DraftTree {
 public:
  // Starts over: `root` is the last of n_committed tokens.
  void reset(TokenId root, std::int64_t n_committed);

  // Adds an empty distribution for the caller to fill; returns its index. References to
  // distributions are valid until the next one is added.
  int add_distribution();
  Distribution& distribution(int index) { return distributions_[static_cast<std::size_t>(index)]; }
  const Distribution& distribution(int index) const {
    return distributions_[static_cast<std::size_t>(index)];
  }

  // Appends a child of `parent`, drawn after its earlier siblings; returns its ordinal. Throws
  // Error if there are scratch nodes.
  int add_child(int parent, TokenId token, int proposal,
                Replacement replacement = Replacement::with);
  // Replaces a drafted node's token by a named one (a point mass). The choice must not depend on
  // the replaced token, and all siblings must be replaced.
  void name(int node, TokenId token) {
    DraftNode& named = nodes_[static_cast<std::size_t>(node)];
    named.token = token;
    named.proposal = kPointMass;
    named.replacement = Replacement::with;
  }
  // Appends a scratch node after any node; returns its ordinal.
  int add_scratch(int parent, TokenId token);
  void drop_scratch() { nodes_.resize(static_cast<std::size_t>(n_drafted_) + 1); }
  void set_draft_prob(int node, int distribution);
  void set_raw_draft(int node, int distribution);

  std::span<const DraftNode> nodes() const { return nodes_; }
  const DraftNode& node(int index) const { return nodes_[static_cast<std::size_t>(index)]; }
  int n_nodes() const { return static_cast<int>(nodes_.size()); }
  int n_drafted() const { return n_drafted_; }  // nodes 1 to n_drafted() are verified
  int n_scratch() const { return n_nodes() - 1 - n_drafted_; }

  // Keeps the listed nodes and renumbers them. The list is ascending and contains the root and the
  // parents of its nodes. Only point masses may be dropped: throws Error if a sampled node is not
  // listed.
  void retain(std::span<const int> kept);

  // The distribution from which a node's token was drawn. If the tree does not hold it, it is
  // computed in `storage`.
  const Distribution& proposal_prob(int node, Distribution& storage) const;

  // The normalised rest of distribution `dist` for the next child of `parent` drawn from it without
  // replacement; null if the siblings have used it up. Computed in `storage` unless it is the
  // distribution itself.
  const Distribution* remaining_prob(int parent, int dist, Distribution& storage) const {
    return less_siblings(parent, n_drafted_ + 1, dist, storage);
  }

  // The next drafted child of `parent` after the node `after` (the first for after = parent); -1:
  // none.
  int next_child(int parent, int after) const;
  // A drafted node's index among its parent's drafted children, from 0.
  int rank(int node) const;
  bool is_chain() const;
  int depth() const;  // of the deepest drafted node

  // Overwrites `path` with the tokens from the root (excluded) to `node`.
  void path_tokens(int node, std::vector<TokenId>& path) const;

  // Tokens committed when the round began, root included: the position of the root's children.
  std::int64_t n_committed() const { return n_committed_; }

 private:
  const Distribution* less_siblings(int parent, int before, int dist, Distribution& storage) const;

  std::vector<DraftNode> nodes_;
  int n_drafted_ = 0;
  std::vector<Distribution> distributions_;  // the first n_distributions_ are in use
  int n_distributions_ = 0;
  std::int64_t n_committed_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFT_TREE_H_
