// Attention over all positions that rows read, split by split (table.h), by one thread.
#ifndef OUTRIDER_KERNELS_WHOLE_ATTENTION_H_
#define OUTRIDER_KERNELS_WHOLE_ATTENTION_H_

#include "kernels/table.h"

namespace outrider::kernels {

// What table.attend and its like are.
using Attend = void (*)(const AttendArgs& args);

// The caller's own, for what it writes on the way.
struct WholeAttentionRoom {
  float* sums;          // (n_rows, n_queries, head_dim)
  AttendState* states;  // (2, n_rows, n_queries)
};

// out of every row becomes its attention. What args says of a split, and rows of states, is not
// read.
void attend_whole(const KernelTable& table, Attend attend, const AttendArgs& args,
                  const WholeAttentionRoom& room);

}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_WHOLE_ATTENTION_H_
