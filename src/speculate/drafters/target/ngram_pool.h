// SPDX-License-Identifier: Apache-2.0
// N-grams as guesses: for every first token the last few that were seen.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_TARGET_NGRAM_POOL_H_
#define OUTRIDER_SPECULATE_DRAFTERS_TARGET_NGRAM_POOL_H_

#include <span>
#include <unordered_map>
#include <vector>

#include "outrider/types.h"

namespace outrider {

// Holds at most `n_guesses` >= 1 different N-grams for each first token; a further one replaces the
// one least recently seen. Not thread-safe.
class NgramPool {
 public:
  explicit NgramPool(int n_guesses) : n_guesses_(static_cast<std::size_t>(n_guesses)) {}

  void see(TokenId first, std::span<const TokenId> others);

  // What followed `first`, the most recent last. Valid until the next see().
  std::span<const std::vector<TokenId>> guesses(TokenId first) const;

 private:
  std::size_t n_guesses_;
  std::unordered_map<TokenId, std::vector<std::vector<TokenId>>> guesses_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_TARGET_NGRAM_POOL_H_
