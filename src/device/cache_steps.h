// SPDX-License-Identifier: Apache-2.0
// Steps that write to a paged KV cache (kernels/attention/kv_layout.h): storing new tokens, and
// moving tokens.
#ifndef OUTRIDER_DEVICE_CACHE_STEPS_H_
#define OUTRIDER_DEVICE_CACHE_STEPS_H_

#include <cstdint>

#include "device/kernel_steps.h"
#include "device/step.h"
#include "kernels/table.h"

namespace outrider::device {

// The contents of a cache's pages, as in AttendRanges::cache.
struct CacheShape {
  kernels::KvKind kv = kernels::KvKind::f32;
  int n_kv_heads = 1;
  int head_dim = 1;  // at most kMaxHeadDim (attend_steps.h)
  // For a cache whose heads are in several ranges: the first of these heads within the row.
  int first_head = 0;
  int heads_of_row = 0;  // 0: n_kv_heads
};

struct CacheNumbers {
  std::uint32_t n_kv_heads, head_dim, max_rows;
  std::uint32_t block_words;  // of one head's keys, or values, in a page
  std::uint32_t first_head, heads_of_row;
};

// A token's place: the cache word at which its page begins, and its place in the page.
struct TokenPlace {
  std::uint32_t page_at;
  std::uint32_t token;
};
struct StoreRanges {
  Range places;  // TokenPlace (max_rows)
  Range keys;    // f32 (max_rows, kv heads of the row, head_dim)
  Range values;  // f32 (max_rows, kv heads of the row, head_dim)
  Range cache;
};
// No two rows may have the same place.
Step store_rows(const Rows& rows, const CacheShape& shape, const StoreRanges& ranges);

// Moves the keys and values of one place to another.
struct TokenMove {
  TokenPlace from;
  TokenPlace to;
};
// moves: TokenMove (max_rows), executed in order: a later one may read what an earlier one wrote,
// or write where it read.
Step move_slots(const Rows& rows, const CacheShape& shape, const Range& moves, const Range& cache);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_CACHE_STEPS_H_
