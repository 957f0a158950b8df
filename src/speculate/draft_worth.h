// What tokens of a draft are worth, for drafters that have no distributions but know how sure they
// are of a token.
#ifndef OUTRIDER_SPECULATE_DRAFT_WORTH_H_
#define OUTRIDER_SPECULATE_DRAFT_WORTH_H_

#include "outrider/types.h"
#include "speculate/draft_tree.h"

namespace outrider {

// A drafter that Drafter::rates_tokens() is sure of a token to some degree, from 0 to 1, before it
// is judged: by how much of the text led to it, and by how often something else did. It drafts
// those tokens that pay, and says which ones it left out, so that what its certainty is worth can
// be learnt without drafting. Not thread-safe.
class DraftWorth {
 public:
  virtual ~DraftWorth() = default;

  // The probability that a token stands, all before it standing.
  virtual double stands(double certainty) const = 0;
  // What the probability of a node, that it stands with all before it, has to be at least for it to
  // pay as the n-th node of the draft, from 1.
  virtual double price(int n) const = 0;

  // Of each drafted node, in the order of the tree's nodes.
  virtual void drafted(double certainty) = 0;
  // Of a token that was left out behind a node (0: the root); where the draft stands up to that
  // node, what the target says there shows whether it would have stood.
  virtual void refused(int parent, TokenId token, double certainty) = 0;

  // What the drafted nodes are expected to bring above their prices, in tokens. tree: theirs.
  virtual double gain(const DraftTree& tree) const = 0;
  // The draft is not used after all: its first token, if any, is one that was left out.
  virtual void withdraw(const DraftTree& tree) = 0;
};

// How sure one may be of what followed n tokens (at least 1) when they stood before: longer strings
// are seldom followed by something else. What it is worth is learnt.
constexpr double certainty_of_match(int n_tokens) {
  return static_cast<double>(n_tokens) / (n_tokens + 1);
}

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFT_WORTH_H_
