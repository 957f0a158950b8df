// What drafters without a model of their own take from the target's pass: its likeliest token
// behind a node.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_TARGET_GUESSES_H_
#define OUTRIDER_SPECULATE_DRAFTERS_TARGET_GUESSES_H_

#include <vector>

#include "speculate/drafter.h"

namespace outrider {

// Not thread-safe.
class TargetGuesses {
 public:
  // The target's likeliest token behind a node of a round, after bias and penalties, which count
  // the text as it is after the round and the node's path without its first n_standing tokens,
  // those that are part of the text by now. A guess at a text that goes on differently anyway:
  // which tokens the penalties count need not be right.
  TokenId behind(const RoundResult& result, int node, int n_standing);

 private:
  std::vector<TokenId> path_;
  std::vector<TokenLogit> replaced_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_TARGET_GUESSES_H_
