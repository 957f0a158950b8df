// SPDX-License-Identifier: Apache-2.0
// The shape of a draft: which nodes get children, and how many.
//
// A drafter grows a tree level by level (tree_growth.h). For each node of the frontier it computes
// its distribution of the next token. The shape says how many children to propose there, which of
// the new nodes form the next frontier and, in the end, which nodes stay. Where shape and drafter
// both support it, a frontier has nodes of several levels.
#ifndef OUTRIDER_SPECULATE_TREE_SHAPES_TREE_SHAPE_H_
#define OUTRIDER_SPECULATE_TREE_SHAPES_TREE_SHAPE_H_

#include <span>
#include <vector>

#include "model/prefill.h"
#include "outrider/types.h"

namespace outrider {

// The default draft length: near the best for acceptance rates around 0.6 to 0.8 with a drafter a
// tenth as expensive as the target (Leviathan et al. 2023, table 1: 3 to 7 there).
inline constexpr int kDefaultDraftLength = 5;

// The default limit of drafts that end where the next token is not expected to save time: with an
// acceptance rate of 0.9, every fifth draft reaches the 16th token.
inline constexpr int kDeepestDraft = 16;

// The most nodes of a draft. With its root it fills a pass as wide as one of prefill, for which
// activations are sized. At temperature 1, one round needs for each node a row of logits (4 bytes a
// token) and two distributions of 12 bytes a token: below a gigabyte at a vocabulary of 128k.
// Published trees have up to 64 nodes on one accelerator.
inline constexpr int kMaxDraftNodes = kPrefillRows - 1;

// How the children of one node are proposed.
enum class Siblings {
  without_replacement,  // each drawn from what its earlier siblings have left
  with_replacement,     // drawn independently; they may repeat
  top_ranks,            // the likeliest tokens, as point masses
};

// Data of a node of a growing draft that the tree does not hold.
struct GrowingNode {
  int place = 0;        // its place in a fixed shape; the root has 0
  double log_prob = 0;  // of its whole path by the drafter, at most 0; for shapes that use it
  // false: it gets no (more) children, because a stop rule ended the path, the path has its maximum
  // length, or its children have been proposed.
  bool open = true;
  bool expanded = false;  // its children have been proposed
  // As in the tree.
  int parent = -1;
  int depth = 0;
  TokenId token = kNoToken;
};

// Stateless and thread-safe. `n_nodes` is always the most nodes that the draft may have, without
// the root. Nodes are always in the order of the tree.
class TreeShape {
 public:
  virtual ~TreeShape() = default;

  // The size of an unlimited draft: depth of the deepest node, nodes without the root.
  virtual int depth() const = 0;
  virtual int n_nodes() const = 0;
  virtual bool is_chain() const = 0;
  virtual Siblings siblings() const = 0;
  // Whether it uses GrowingNode::log_prob. Such a shape must have Siblings::top_ranks: sampled
  // nodes must not be chosen by their value.
  virtual bool uses_log_prob() const { return false; }
  // Whether choose_frontier() may choose among nodes of all levels.
  virtual bool mixes_levels() const { return false; }
  // If the nodes that stay are the likeliest ones, their number: children with as many likelier
  // nodes need not be proposed. 0: otherwise.
  virtual int n_likeliest(int /*n_nodes*/) const { return 0; }

  // The children to propose after a node of the frontier, and the first one's place.
  struct Children {
    int count = 0;
    int first_place = 0;
  };
  virtual Children children(const GrowingNode& node, int n_nodes) const = 0;

  // Writes to `frontier`, ascending, the open nodes from `first` on to expand next: among those of
  // the level just proposed or, where levels are mixed, among all.
  virtual void choose_frontier(std::span<const GrowingNode> nodes, int first, int n_nodes,
                               std::vector<int>& frontier) const = 0;

  // Writes to `kept`, ascending, the nodes that stay of a fully grown draft, including the root.
  // False: all stay, and `kept` is unchanged.
  virtual bool choose_kept(std::span<const GrowingNode> nodes, int n_nodes,
                           std::vector<int>& kept) const = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_TREE_SHAPES_TREE_SHAPE_H_
