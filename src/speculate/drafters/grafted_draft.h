// One drafter's draft as a part of another's: both trees, and which node of the one is which of the
// other.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_GRAFTED_DRAFT_H_
#define OUTRIDER_SPECULATE_DRAFTERS_GRAFTED_DRAFT_H_

#include <cstdint>
#include <vector>

#include "speculate/draft_tree.h"
#include "speculate/drafter.h"

namespace outrider {

class GraftedDraft {
 public:
  // Nothing is drafted, behind the node `at` of the whole tree. For the part, its root `token` is
  // the last of n_committed tokens.
  void reset(TokenId token, std::int64_t n_committed, int at);

  // The part's own, to be drafted in.
  DraftTree& tree() { return tree_; }
  const DraftTree& tree() const { return tree_; }
  // Which node of the part a node of the whole is (the first, where several are); -1: none.
  int own_node(int whole) const;
  bool is_grafted() const { return static_cast<int>(whole_.size()) > tree_.n_drafted(); }

  // Adds what was drafted to the whole tree, children behind those that are there; scratch nodes
  // wait. share_named: a token that was named outright, and that stands there as such already, is
  // not repeated. with_laws: the nodes of the whole get the part's distributions, too, where they
  // have none.
  void graft(DraftTree& whole, bool share_named, bool with_laws);
  // Behind all drafted nodes: adds the scratch nodes, or drops them where a pass has no room.
  void graft_scratch(DraftTree& whole);
  // Drops scratch nodes that the whole tree has lost to a drafter around it.
  void match(const DraftTree& whole);

  // What became of the part's draft: as far as the accepted path runs in it, and behind that, for
  // the part, the verifier's token. An accepted path that does not come to the part's root leaves
  // it nothing but the whole's own next token. Context and features are the whole's.
  RoundResult result(const RoundResult& whole);

 private:
  DraftTree tree_;
  std::vector<int> whole_ = {0};  // of its nodes, which they are in the whole tree
  std::vector<int> rows_;         // and in the target's pass
  Verdict verdict_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_GRAFTED_DRAFT_H_
