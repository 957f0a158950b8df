// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/whole_attention.h"

#include <algorithm>
#include <cstddef>

namespace outrider::kernels {

// Treated as a split of one position whose value is zero.
void join_sink(const KernelTable& table, float logit, const float* zeros, int value_dim,
               float* sums, AttendState* state) {
  table.merge_split(zeros, {.highest = logit, .total = 1}, value_dim, sums, state);
}

void attend_whole(const KernelTable& table, Attend attend, const AttendArgs& args,
                  const WholeAttentionScratch& scratch, const AttentionSinks& sinks) {
  const auto n_queries = static_cast<std::size_t>(args.n_queries);
  const auto value_dim = static_cast<std::size_t>(args.value_dim());
  const auto first_of = [&](int r) { return static_cast<std::size_t>(r) * n_queries; };
  AttendState* const further_states = scratch.states + first_of(args.n_rows);

  AttendRow rows[kMaxAttendRows];
  AttendArgs one = args;
  one.rows = rows;
  int first_split = args.rows[0].first_key / kSplitKeys;
  for (int r = 1; r < args.n_rows; ++r) {
    first_split = std::min(first_split, args.rows[r].first_key / kSplitKeys);
  }
  for (one.split = first_split;; ++one.split) {
    // The first split's results are stored in the output; others are merged into them.
    const bool further = one.split > first_split;
    one.out_stride = further ? value_dim : args.out_stride;
    one.n_rows = 0;
    for (int r = 0; r < args.n_rows; ++r) {
      if (splits_of(args.rows[r].n_keys) <= one.split) continue;
      AttendRow& row = rows[one.n_rows++] = args.rows[r];
      row.states = (further ? further_states : scratch.states) + first_of(r);
      if (further) row.out = scratch.sums + first_of(r) * value_dim;
    }
    if (one.n_rows == 0) break;
    attend(one);
    for (int r = 0; further && r < args.n_rows; ++r) {
      if (splits_of(args.rows[r].n_keys) <= one.split) continue;
      for (std::size_t q = 0; q < n_queries; ++q) {
        table.merge_split(scratch.sums + (first_of(r) + q) * value_dim,
                          further_states[first_of(r) + q], args.value_dim(),
                          args.rows[r].out + q * args.out_stride, &scratch.states[first_of(r) + q]);
      }
    }
  }
  for (int r = 0; r < args.n_rows; ++r) {
    for (std::size_t q = 0; q < n_queries; ++q) {
      AttendState& state = scratch.states[first_of(r) + q];
      float* const out = args.rows[r].out + q * args.out_stride;
      if (sinks.logits != nullptr) {
        join_sink(table, sinks.logits[q], sinks.zeros, args.value_dim(), out, &state);
      }
      table.finish_attention(state, args.value_dim(), out);
    }
  }
}

}  // namespace outrider::kernels
