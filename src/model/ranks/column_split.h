// Which part of a model falls to which rank: pure functions of sizes and the number of ranks.
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

// n things dealt out over n_ranks ranks in order: how many each one gets. None gets more than one
// above another. n is at least n_ranks.
std::vector<int> split_evenly(int n, int n_ranks);

// The same of a product's columns. Borders stand at multiples of 32, which are borders of tiles,
// where there are so many columns; else at multiples of 16, 8, 4, 2 or 1. Bits do not depend on
// that: an output is computed from its own row of the weight alone.
std::vector<int> split_columns(int n, int n_ranks);

// Where rank `rank` stands among the parts.
Range part_of(const std::vector<int>& parts, int rank);

// The heads of an attention that a rank has.
struct HeadShare {
  Range queries;  // query heads
  Range keys;     // the key-value heads that these read; neighbours may have the same one, too
};
// n_kv_heads divides n_heads, which is at least share.n_ranks.
HeadShare share_heads(int n_heads, int n_kv_heads, const RankShare& share);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_RANKS_COLUMN_SPLIT_H_
