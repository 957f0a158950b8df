// SPDX-License-Identifier: Apache-2.0
// The part of a model that each rank holds: pure functions of sizes and the number of ranks.
// (Columns of a product are the rows of its weight.)
#ifndef OUTRIDER_MODEL_RANKS_COLUMN_SPLIT_H_
#define OUTRIDER_MODEL_RANKS_COLUMN_SPLIT_H_

#include <vector>

#include "tensor/team.h"

namespace outrider {

// One of the processes that hold a model together.
struct RankShare {
  int rank = 0;
  int n_ranks = 1;
};

// Splits n items over n_ranks ranks in order; returns the number for each. The numbers differ by at
// most one. n is at least n_ranks.
std::vector<int> split_evenly(int n, int n_ranks);

// The same for a product's columns. Borders are multiples of 32, which are borders of tiles, if
// there are enough columns; else of 16, 8, 4, 2 or 1. Bits do not depend on them: an output is
// computed from its own row of the weight alone.
std::vector<int> split_columns(int n, int n_ranks);

// The range of rank `rank`.
Range part_of(const std::vector<int>& parts, int rank);

// A rank's heads of an attention.
struct HeadShare {
  Range queries;  // query heads
  Range keys;     // the key-value heads that these read; two ranks may have the same one
};
// n_kv_heads divides n_heads, which is at least share.n_ranks.
HeadShare share_heads(int n_heads, int n_kv_heads, const RankShare& share);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_RANKS_COLUMN_SPLIT_H_
