// SPDX-License-Identifier: Apache-2.0
#include "measure/arbitrary_tokens.h"

#include <cstdint>

namespace outrider {

std::vector<TokenId> arbitrary_tokens(int n_tokens, int vocabulary_size) {
  std::vector<TokenId> tokens;
  tokens.reserve(static_cast<std::size_t>(n_tokens));
  // Knuth's multiplicative hash (The Art of Computer Programming, volume 3, section 6.4).
  constexpr std::uint32_t kGolden = 2654435761U;
  for (int index = 0; index < n_tokens; ++index) {
    const std::uint32_t hash = (static_cast<std::uint32_t>(index) + 1) * kGolden;
    const std::uint64_t scaled = std::uint64_t{hash} * static_cast<std::uint32_t>(vocabulary_size);
    tokens.push_back(static_cast<TokenId>(scaled >> 32));
  }
  return tokens;
}

}  // namespace outrider
