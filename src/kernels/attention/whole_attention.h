// SPDX-License-Identifier: Apache-2.0
// Attention over all positions that rows read, split by split (table.h), on one thread.
#ifndef OUTRIDER_KERNELS_ATTENTION_WHOLE_ATTENTION_H_
#define OUTRIDER_KERNELS_ATTENTION_WHOLE_ATTENTION_H_

#include "kernels/table.h"

namespace outrider::kernels {

// The type of table.attend[kind] and table.attend_bf16_pairs.
using Attend = void (*)(const AttendArgs& args);

// Working memory, provided by the caller.
struct WholeAttentionScratch {
  float* sums;          // (n_rows, n_queries, value_dim)
  AttendState* states;  // (2, n_rows, n_queries)
};

// For each query a logit that joins its softmax after the last position and has no value (attention
// sinks: Xiao et al. 2023, arXiv 2309.17453; learned: gpt-oss, arXiv 2508.10925).
struct AttentionSinks {
  const float* logits = nullptr;  // (n_queries); null: none
  const float* zeros = nullptr;   // (value_dim)
};

// Adds a query's sink to the result of all positions, sums (value_dim) and state. Called once,
// between the last merge and finish_attention, so that bits depend on no chunk or split.
void join_sink(const KernelTable& table, float logit, const float* zeros, int value_dim,
               float* sums, AttendState* state);

// Writes the attention of every row to its out. The members of args that concern a split, and the
// rows' states, are ignored.
void attend_whole(const KernelTable& table, Attend attend, const AttendArgs& args,
                  const WholeAttentionScratch& scratch, const AttentionSinks& sinks = {});

}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_ATTENTION_WHOLE_ATTENTION_H_
