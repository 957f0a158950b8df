// The shape of a draft: which nodes get children, and how many.
//
// A drafter grows a tree level by level (tree_growth.h). For each node of the frontier it finds its
// distribution of what follows; the shape says how many children to propose there, which of the new
// nodes form the next frontier and, in the end, which nodes stay. Where shape and drafter both can,
// a frontier has nodes of several levels.
#ifndef OUTRIDER_SPECULATE_TREE_SHAPE_H_
#define OUTRIDER_SPECULATE_TREE_SHAPE_H_

#include <span>
#include <vector>

#include "model/prefill.h"
#include "outrider/types.h"

namespace outrider {

// The draft length where nobody says: near the best for acceptance rates around 0.6 to 0.8 at a
// drafter a tenth as expensive as the target (Leviathan et al. 2023, table 1: 3 to 7 there).
inline constexpr int kDefaultDraftLength = 5;

// Where drafts end by themselves when the next token does not pay, and nobody says how long they
// may be: of tokens that stand nine times in ten, the 16th is reached by every fifth draft.
inline constexpr int kDeepestDraft = 16;

// The most nodes a draft may be asked to have. With its root, it fills a pass as wide as one of
// prefill, for which activations are sized; and what one round holds at temperature 1, for each
// node a row of logits (4 bytes a token) and two distributions of 12 bytes a token, stays below a
// gigabyte at a vocabulary of 128k. Published trees have up to 64 nodes on one accelerator.
inline constexpr int kMostDraftNodes = kPrefillRows - 1;

// How the children of one node are proposed.
enum class Siblings {
  without_replacement,  // drawn, each from what its earlier siblings have left
  with_replacement,     // drawn independently; they may repeat
  top_ranks,            // the likeliest tokens, as point masses
};

// What is known of a node of a growing draft beside what stands in the tree.
struct GrowingNode {
  int place = 0;        // which place of a fixed shape it takes; the root has 0
  double log_prob = 0;  // of its whole path by the drafter, at most 0; for shapes that use it
  // false: it gets no (more) children, since a stop rule ended the path, the path is as long as it
  // may be, or its children have been proposed.
  bool open = true;
  bool expanded = false;  // its children have been proposed
  // As in the tree.
  int parent = -1;
  int depth = 0;
  TokenId token = kNoToken;
};

// Stateless and thread-safe. `n_nodes` is always the most nodes that the draft may have, the root
// left out. All nodes are given in the order of the tree.
class TreeShape {
 public:
  virtual ~TreeShape() = default;

  // What it asks for where nothing limits it: depth of the deepest node, nodes without the root.
  virtual int depth() const = 0;
  virtual int n_nodes() const = 0;
  virtual bool is_chain() const = 0;
  virtual Siblings siblings() const = 0;
  // Whether it looks at GrowingNode::log_prob. Such a shape must have Siblings::top_ranks: sampled
  // nodes may not be chosen by their value.
  virtual bool uses_log_prob() const { return false; }
  // Whether choose_frontier() may be asked for nodes of all levels at once.
  virtual bool mixes_levels() const { return false; }
  // Where what stays are the so many likeliest of all nodes: children that have as many likelier
  // nodes need not be proposed. 0: it is not so.
  virtual int n_likeliest(int /*n_nodes*/) const { return 0; }

  // The children to propose behind a node of the frontier, and the first one's place.
  struct Children {
    int count = 0;
    int first_place = 0;
  };
  virtual Children children(const GrowingNode& node, int n_nodes) const = 0;

  // Writes to `frontier`, ascending, which of the nodes from `first` on to expand next: those of
  // the level that was just proposed or, where levels are mixed, all. Only open ones.
  virtual void choose_frontier(std::span<const GrowingNode> nodes, int first, int n_nodes,
                               std::vector<int>& frontier) const = 0;

  // Writes to `kept`, ascending, the nodes that stay of a draft fully grown, the root among them.
  // False: all of them, and `kept` is as it was.
  virtual bool choose_kept(std::span<const GrowingNode> nodes, int n_nodes,
                           std::vector<int>& kept) const = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_TREE_SHAPE_H_
