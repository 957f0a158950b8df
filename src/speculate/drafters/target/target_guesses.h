// SPDX-License-Identifier: Apache-2.0
// The target's likeliest tokens after a node, for drafters without a model.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_TARGET_TARGET_GUESSES_H_
#define OUTRIDER_SPECULATE_DRAFTERS_TARGET_TARGET_GUESSES_H_

#include <span>
#include <vector>

#include "speculate/drafter.h"

namespace outrider {

// All tokens are found after bias and penalties. These count the text after the round and the
// node's path without its first n_standing tokens, which are part of the text by now. The tokens
// are guesses for a text that continues differently in any case, so the penalties need not be
// exact. Not thread-safe.
class TargetGuesses {
 public:
  // The target's likeliest token after a node of a round.
  TokenId behind(const RoundResult& result, int node, int n_standing);

  // The `count` >= 1 likeliest tokens, the likeliest first, with their logits; fewer if no others
  // are possible. Valid until the next call.
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

#endif  // OUTRIDER_SPECULATE_DRAFTERS_TARGET_TARGET_GUESSES_H_
