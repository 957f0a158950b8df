// What drafters without a model of their own take from the target's pass: its likeliest tokens
// behind a node.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_TARGET_GUESSES_H_
#define OUTRIDER_SPECULATE_DRAFTERS_TARGET_GUESSES_H_

#include <span>
#include <vector>

#include "speculate/drafter.h"

namespace outrider {

// All are found after bias and penalties, which count the text as it is after the round and the
// node's path without its first n_standing tokens, those that are part of the text by now. They are
// guesses at a text that goes on differently anyway: which tokens the penalties count need not be
// right. Not thread-safe.
class TargetGuesses {
 public:
  // The target's likeliest token behind a node of a round.
  TokenId behind(const RoundResult& result, int node, int n_standing);

  // Its `count` >= 1 likeliest ones, the likeliest first, with their logits; fewer where no others
  // can be. Valid until the next call.
  std::span<const TokenLogit> likeliest_behind(const RoundResult& result, int node, int n_standing,
                                               int count);

 private:
  std::span<const TokenId> counted_path(const RoundResult& result, int node, int n_standing);

  std::vector<TokenId> path_;
  std::vector<TokenLogit> replaced_;
  std::vector<TokenId> tokens_;
  std::vector<TokenLogit> likeliest_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_TARGET_GUESSES_H_
