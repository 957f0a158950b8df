// SPDX-License-Identifier: Apache-2.0
// One drafter's draft as a part of another's: the part's tree, and the mapping of its nodes to
// those of the whole tree.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_GRAFTED_DRAFT_H_
#define OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_GRAFTED_DRAFT_H_

#include <cstdint>
#include <vector>

#include "speculate/draft_tree.h"
#include "speculate/drafter.h"

namespace outrider {

class GraftedDraft {
 public:
  // Starts an empty draft after the node `at` of the whole tree. In the part, its root `token` is
  // the last of n_committed tokens.
  void reset(TokenId token, std::int64_t n_committed, int at);

  // The part's tree, in which it drafts.
  DraftTree& tree() { return tree_; }
  const DraftTree& tree() const { return tree_; }
  // The part's node for a node of the whole (the first, if several); -1: none.
  int own_node(int whole) const;
  bool is_grafted() const { return static_cast<int>(whole_.size()) > tree_.n_drafted(); }

  // Adds the draft to the whole tree, after existing children; scratch nodes are added later.
  // share_named: a named token (a point mass) that exists there as such is not repeated.
  // with_distributions: nodes of the whole without distributions get the part's.
  void graft(DraftTree& whole, bool share_named, bool with_distributions);
  // Called after all drafted nodes: adds the scratch nodes, or drops them where the pass has no
  // room.
  void graft_scratch(DraftTree& whole);
  // Drops scratch nodes that an outer drafter has dropped from the whole tree.
  void match(const DraftTree& whole);

  // The round's result for the part: the accepted path as far as it runs in the part, and then the
  // next token of the whole path. If the accepted path does not reach the part's root, only the
  // whole's next token is left. Context and features are the whole's.
  RoundResult result(const RoundResult& whole);

 private:
  DraftTree tree_;
  std::vector<int> whole_ = {0};  // for each of its nodes, the node of the whole tree
  std::vector<int> rows_;         // and the row of the target's pass
  Verdict verdict_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_GRAFTED_DRAFT_H_
