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

// How a token was drawn from the law it names.
enum class Draws {
  with_replacement,     // from the law itself
  without_replacement,  // from the law less the tokens of earlier siblings drawn so from it
};

struct DraftNode {
  TokenId token = kNoToken;
  int parent = -1;            // -1 for the root alone; a parent precedes its children
  int depth = 0;              // 0 for the root
  int proposal = kPointMass;  // the law this token was drawn from, in the way `draws` says
  Draws draws = Draws::with_replacement;
  int draft_prob = kNoDistribution;  // the drafter's distribution of what follows this node
  int raw_draft = kNoDistribution;   // and that before temperature and truncation, if asked for
};

// Invariants: node 0 is the root, the last committed token; children of a node stand in the order
// in which they were drawn; that order, and every sampled child, is kept (sorting sampled siblings,
// or dropping one because of its value, makes verification biased: docs/architecture.md); each was
// drawn from its law whatever the nodes before it are. Which node gets the next child may depend on
// all of them. Storage is kept from round to round. Not thread-safe.
//
// Behind the drafted nodes there may be scratch nodes: the target runs them in the same pass, and
// after the round the drafter may read what it says there (RoundResult), but nobody judges them.
// They are no children to next_child() and is_chain(), so that no acceptance, rule or count meets
// them, and having the last ordinals they leave the keys of all draws as they are.
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
  // Throws Error behind scratch nodes.
  int add_child(int parent, TokenId token, int proposal, Draws draws = Draws::with_replacement);
  // Puts another token, named outright, in a drafted node's place, whatever had been drawn there:
  // not by its value. To be done to all of its siblings.
  void name(int node, TokenId token) {
    DraftNode& named = nodes_[static_cast<std::size_t>(node)];
    named.token = token;
    named.proposal = kPointMass;
    named.draws = Draws::with_replacement;
  }
  // Appends a scratch node behind any node; returns its ordinal.
  int add_scratch(int parent, TokenId token);
  void drop_scratch() { nodes_.resize(static_cast<std::size_t>(n_drafted_) + 1); }
  void set_draft_prob(int node, int distribution);
  void set_raw_draft(int node, int distribution);

  std::span<const DraftNode> nodes() const { return nodes_; }
  const DraftNode& node(int index) const { return nodes_[static_cast<std::size_t>(index)]; }
  int n_nodes() const { return static_cast<int>(nodes_.size()); }
  int n_drafted() const { return n_drafted_; }  // nodes 1 to n_drafted() are judged
  int n_scratch() const { return n_nodes() - 1 - n_drafted_; }

  // Keeps the nodes listed, ascending, the root and the parents of all others among them, and
  // numbers them anew in that order. Only point masses may go: throws Error where a sampled node is
  // not listed.
  void retain(std::span<const int> kept);

  // The law that a node's token was really drawn from; what is no distribution of the tree as it
  // stands is built in `storage`.
  const Distribution& proposal_prob(int node, Distribution& storage) const;

  // What is left of a law for the next child of `parent` that is drawn from it without replacement,
  // normalised; null if its siblings have used it up. Built in `storage` unless it is the law.
  const Distribution* remaining_prob(int parent, int law, Distribution& storage) const {
    return less_siblings(parent, n_drafted_ + 1, law, storage);
  }

  // The next drafted child of `parent` after the node `after` (the first for after = parent); -1:
  // no more.
  int next_child(int parent, int after) const;
  // Which of its parent's drafted children a drafted node is, from 0.
  int rank(int node) const;
  bool is_chain() const;
  int depth() const;  // of the deepest drafted node

  // The tokens from the root (excluded) to `node`; `path` is overwritten.
  void path_tokens(int node, std::vector<TokenId>& path) const;

  // Tokens committed when the round began, the root included: the position of the root's children.
  std::int64_t n_committed() const { return n_committed_; }

 private:
  const Distribution* less_siblings(int parent, int before, int law, Distribution& storage) const;

  std::vector<DraftNode> nodes_;
  int n_drafted_ = 0;
  std::vector<Distribution> distributions_;  // the first n_distributions_ are in use
  int n_distributions_ = 0;
  std::int64_t n_committed_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFT_TREE_H_
