// SPDX-License-Identifier: Apache-2.0
// The worth of drafted tokens, for drafters that have no distributions but a certainty for each
// token.
#ifndef OUTRIDER_SPECULATE_DRAFT_WORTH_H_
#define OUTRIDER_SPECULATE_DRAFT_WORTH_H_

#include "outrider/types.h"
#include "speculate/draft_tree.h"

namespace outrider {

// Judges tokens of a drafter with Drafter::rates_tokens(). Before verification such a drafter has a
// certainty of each token, from 0 to 1: by the length of the match that led to it, and by how often
// something else followed. It drafts the tokens that pay and reports those it left out, so that the
// acceptance rate of a certainty can be learnt without drafting. Not thread-safe.
class DraftWorth {
 public:
  virtual ~DraftWorth() = default;

  // The probability that a token is accepted, given that all before it are.
  virtual double stands(double certainty) const = 0;
  // The least probability of acceptance, with all nodes before it, at which a node pays as the n-th
  // node of the draft, from 1.
  virtual double price(int n) const = 0;

  // Reports each drafted node, in the order of the tree's nodes.
  virtual void drafted(double certainty) = 0;
  // Reports a token that was left out after a node (0: the root). If the draft is accepted up to
  // that node, the target's logits there show whether the token would have been accepted.
  virtual void refused(int parent, TokenId token, double certainty) = 0;

  // The expected gain of the drafted nodes above their prices, in tokens. tree: the tree that holds
  // them.
  virtual double gain(const DraftTree& tree) const = 0;
  // Withdraws the draft: it is not used, and its first token, if any, counts as left out.
  virtual void withdraw(const DraftTree& tree) = 0;
};

// The certainty of a token that followed a match of n tokens (at least 1). Longer matches seldom
// have another continuation. What a certainty is worth is learnt.
constexpr double certainty_of_match(int n_tokens) {
  return static_cast<double>(n_tokens) / (n_tokens + 1);
}

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFT_WORTH_H_
