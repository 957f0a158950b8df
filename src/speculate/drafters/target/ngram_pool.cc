// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/target/ngram_pool.h"

#include <algorithm>

namespace outrider {

void NgramPool::see(TokenId first, std::span<const TokenId> others) {
  std::vector<std::vector<TokenId>>& guesses = guesses_[first];
  auto at = std::find_if(guesses.begin(), guesses.end(), [&](const std::vector<TokenId>& guess) {
    return std::equal(guess.begin(), guess.end(), others.begin(), others.end());
  });
  if (at == guesses.end()) {
    if (guesses.size() < n_guesses_) {
      guesses.emplace_back(others.begin(), others.end());
      return;
    }
    at = guesses.begin();
    at->assign(others.begin(), others.end());
  }
  std::rotate(at, at + 1, guesses.end());
}

std::span<const std::vector<TokenId>> NgramPool::guesses(TokenId first) const {
  const auto at = guesses_.find(first);
  if (at == guesses_.end()) return {};
  return at->second;
}

}  // namespace outrider
