// SPDX-License-Identifier: Apache-2.0
#include "device/cache_steps.h"

#include <fmt/format.h>

#include "device/attend_steps.h"
#include "device/make_step.h"
#include "kernels/attention/kv_layout.h"
#include "outrider/error.h"

namespace outrider::device {
namespace {

CacheNumbers numbers_of(const Rows& rows, const CacheShape& shape) {
  if (shape.head_dim > kMaxHeadDim) {
    throw Error("record", "KV cache", fmt::format("heads of at most {}", kMaxHeadDim),
                fmt::format("{}", shape.head_dim));
  }
  const kernels::KvLayout layout{shape.kv, shape.head_dim};
  return {word(shape.n_kv_heads),
          word(shape.head_dim),
          word(rows.max_rows),
          static_cast<std::uint32_t>(layout.block_bytes() / sizeof(std::uint32_t)),
          word(shape.first_head),
          word(shape.heads_of_row == 0 ? shape.n_kv_heads : shape.heads_of_row)};
}

}  // namespace

Step store_rows(const Rows& rows, const CacheShape& shape, const StoreRanges& ranges) {
  Step step = step_of(Kernel::store_rows,
                      {reads(rows.facts), reads(ranges.places), reads(ranges.keys),
                       reads(ranges.values), changes(ranges.cache)},
                      numbers_of(rows, shape));
  step.variant = static_cast<std::uint32_t>(shape.kv);
  step.grid = {word(2 * shape.n_kv_heads), word(rows.max_rows), 1};
  return step;
}

Step move_slots(const Rows& rows, const CacheShape& shape, const Range& moves, const Range& cache) {
  Step step = step_of(Kernel::move_slots, {reads(rows.facts), reads(moves), changes(cache)},
                      numbers_of(rows, shape));
  step.variant = static_cast<std::uint32_t>(shape.kv);
  step.grid = {word(2 * shape.n_kv_heads), 1, 1};
  return step;
}

}  // namespace outrider::device
