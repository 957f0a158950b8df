// Attention over all positions that rows read, split by split (table.h), by one thread.
#ifndef OUTRIDER_KERNELS_WHOLE_ATTENTION_H_
#define OUTRIDER_KERNELS_WHOLE_ATTENTION_H_

#include "kernels/table.h"

namespace outrider::kernels {

// What table.attend and its like are.
using Attend = void (*)(const AttendArgs& args);

// The caller's own, for what it writes on the way.
struct WholeAttentionRoom {
  float* sums;          // (n_rows, n_queries, value_dim)
  AttendState* states;  // (2, n_rows, n_queries)
};

// Of each query a logit that joins its softmax behind the last position and brings no value
// (attention sinks: Xiao et al. 2023, arXiv 2309.17453; learned: gpt-oss, arXiv 2508.10925).
struct AttentionSinks {
  const float* logits = nullptr;  // (n_queries); null: none
  const float* zeros = nullptr;   // (value_dim)
};

// What all positions gave a query, sums (value_dim) and state, takes its sink in: once, between the
// last merge and finish_attention, so that bits depend on no chunk or split.
void join_sink(const KernelTable& table, float logit, const float* zeros, int value_dim,
               float* sums, AttendState* state);

// out of every row becomes its attention. What args says of a split, and rows of states, is not
// read.
void attend_whole(const KernelTable& table, Attend attend, const AttendArgs& args,
                  const WholeAttentionRoom& room, const AttentionSinks& sinks = {});

}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_WHOLE_ATTENTION_H_
