// SPDX-License-Identifier: Apache-2.0
// Chooses the tokens of a drafter with a smaller output matrix.
#ifndef OUTRIDER_TRAIN_LOSSES_DRAFT_VOCABULARY_H_
#define OUTRIDER_TRAIN_LOSSES_DRAFT_VOCABULARY_H_

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "outrider/types.h"

namespace outrider::train {

// The n most frequent tokens of a text, in ascending order; of equally frequent tokens the lower
// id. Every id of `text` is in 0 .. vocabulary_size - 1, and n is at most vocabulary_size.
inline std::vector<TokenId> most_frequent_tokens(std::span<const TokenId> text, int n,
                                                 int vocabulary_size) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(vocabulary_size));
  for (const TokenId token : text) ++counts[static_cast<std::size_t>(token)];
  std::vector<TokenId> ids(counts.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](TokenId left, TokenId right) {
    return counts[static_cast<std::size_t>(left)] > counts[static_cast<std::size_t>(right)];
  });
  ids.resize(static_cast<std::size_t>(n));
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_LOSSES_DRAFT_VOCABULARY_H_
