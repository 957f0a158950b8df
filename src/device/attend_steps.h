// SPDX-License-Identifier: Apache-2.0
// The steps of attention over a paged cache: one step for all splits of all rows' positions, then
// one that merges them (kernels/table.h: attend, merge_split, finish_attention).
#ifndef OUTRIDER_DEVICE_ATTEND_STEPS_H_
#define OUTRIDER_DEVICE_ATTEND_STEPS_H_

#include <cstddef>
#include <cstdint>

#include "device/kernel_steps.h"
#include "device/step.h"
#include "kernels/table.h"

namespace outrider::device {

inline constexpr int kMaxHeadDim = 256;

// What a row reads: an element of AttendRanges::rows. Like AttendRow (kernels/table.h).
struct AttendRowWords {
  std::uint32_t n_keys;        // at least 1
  std::uint32_t first_key;     // below n_keys
  std::uint32_t n_contiguous;  // at most n_keys
  std::uint32_t slots_at;      // the first of its other slots, in AttendRanges::slots
};

struct AttendRanges {
  Range queries;  // f32 (max_rows, heads, head_dim), after RoPE
  Range rows;     // AttendRowWords (max_rows)
  Range slots;    // u32
  Range pages;    // u32 (max_rows, max_pages): the place in the cache of each 64 slots of a row's
                  // text, in words
  Range cache;    // a page has a block of keys per key-value head, then one of values per head
                  // (kernels/attention/kv_layout.h)
  Range sums;     // f32 (max_rows, max_splits, heads, head_dim): between the two steps
  Range states;   // f32 (max_rows, max_splits, heads, 2): highest score, total
  Range out;      // f32 (max_rows, heads, head_dim)
};

struct AttendShape {
  kernels::KvKind kv = kernels::KvKind::f32;
  int n_heads = 1;  // a multiple of n_kv_heads
  int n_kv_heads = 1;
  int head_dim = 1;    // at most kMaxHeadDim
  int max_splits = 1;  // of 1,024 positions each; no row may have more
  int max_pages = 1;   // per row
  float scale = 1.0F;
  float softcap = 0;  // of scores, above 0 with a finite inverse; 0: none
  // For a cache whose heads are in several ranges: the first of these heads within the row.
  int first_head = 0;
  int heads_of_row = 0;  // 0: n_heads
};

struct AttendNumbers {
  std::uint32_t n_heads, n_kv_heads, head_dim, max_rows, max_splits, max_pages;
  std::uint32_t block_words;  // one head's keys, or values, in a page
  float scale;
  std::uint32_t first_head, heads_of_row;
  float softcap, inverse_softcap;
};
// Uses only these heads of the row in queries, sums and states.
Step attend(const Rows& rows, const AttendShape& shape, const AttendRanges& ranges);

struct MergeNumbers {
  std::uint32_t n_heads, head_dim, max_rows, max_splits;
};
// For all heads of the row.
Step merge_splits(const Rows& rows, const AttendShape& shape, const AttendRanges& ranges);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_ATTEND_STEPS_H_
