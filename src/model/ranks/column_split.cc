// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/column_split.h"

#include <cstdint>

namespace outrider {

std::vector<int> split_evenly(int n, int n_ranks) {
  std::vector<int> parts;
  for (std::int64_t rank = 0; rank < n_ranks; ++rank) {
    parts.push_back(static_cast<int>(n * (rank + 1) / n_ranks - n * rank / n_ranks));
  }
  return parts;
}

std::vector<int> split_columns(int n, int n_ranks) {
  int unit = 32;
  while (unit > 1 && n / unit < n_ranks) unit /= 2;
  std::vector<int> parts = split_evenly(n / unit, n_ranks);
  for (int& part : parts) part *= unit;
  parts.back() += n % unit;
  return parts;
}

Range part_of(const std::vector<int>& parts, int rank) {
  Range range;
  for (int i = 0; i < rank; ++i) range.begin += parts[static_cast<std::size_t>(i)];
  range.end = range.begin + parts[static_cast<std::size_t>(rank)];
  return range;
}

HeadShare share_heads(int n_heads, int n_kv_heads, const RankShare& share) {
  const int group = n_heads / n_kv_heads;
  HeadShare heads;
  heads.queries = part_of(split_evenly(n_heads, share.n_ranks), share.rank);
  heads.keys = {heads.queries.begin / group, (heads.queries.end - 1) / group + 1};
  return heads;
}

}  // namespace outrider
