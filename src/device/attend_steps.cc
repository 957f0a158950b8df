// SPDX-License-Identifier: Apache-2.0
#include "device/attend_steps.h"

#include <fmt/format.h>

#include <cstring>

#include "device/make_step.h"
#include "kernels/attention/kv_layout.h"
#include "outrider/error.h"

namespace outrider::device {
Step attend(const Rows& rows, const AttendShape& shape, const AttendRanges& ranges) {
  if (shape.head_dim > kMaxHeadDim) {
    throw Error("record", "attention", fmt::format("heads of at most {}", kMaxHeadDim),
                fmt::format("{}", shape.head_dim));
  }
  Step step;
  constexpr Kernel kKernels[] = {Kernel::attend_f32, Kernel::attend_bf16, Kernel::attend_int8};
  step.kernel = kKernels[static_cast<int>(shape.kv)];
  for (const Range& range :
       {rows.facts, ranges.queries, ranges.rows, ranges.slots, ranges.pages, ranges.cache}) {
    step.uses.push_back({range, Access::read});
  }
  const bool is_whole = shape.heads_of_row == 0;
  // Other heads' parts are unchanged.
  const Access access = is_whole ? Access::write : Access::read_write;
  step.uses.push_back({ranges.sums, access});
  step.uses.push_back({ranges.states, access});
  const kernels::KvLayout layout{shape.kv, shape.head_dim};
  const AttendNumbers numbers = {
      word(shape.n_heads),
      word(shape.n_kv_heads),
      word(shape.head_dim),
      word(rows.max_rows),
      word(shape.max_splits),
      word(shape.max_pages),
      static_cast<std::uint32_t>(layout.block_bytes() / sizeof(std::uint32_t)),
      shape.scale,
      word(shape.first_head),
      word(is_whole ? shape.n_heads : shape.heads_of_row),
      shape.softcap,
      shape.softcap > 0 ? 1.0F / shape.softcap : 0.0F};
  std::memcpy(step.numbers.data(), &numbers, sizeof numbers);
  step.variant = shape.softcap > 0 ? 1 : 0;
  step.grid = {word(shape.n_heads), word(rows.max_rows), word(shape.max_splits)};
  return step;
}

Step merge_splits(const Rows& rows, const AttendShape& shape, const AttendRanges& ranges) {
  Step step;
  step.kernel = Kernel::merge_splits;
  for (const Range& range : {rows.facts, ranges.rows, ranges.sums, ranges.states}) {
    step.uses.push_back({range, Access::read});
  }
  step.uses.push_back({ranges.out, Access::write});
  const MergeNumbers numbers = {word(shape.n_heads), word(shape.head_dim), word(rows.max_rows),
                                word(shape.max_splits)};
  std::memcpy(step.numbers.data(), &numbers, sizeof numbers);
  step.grid = {word(shape.n_heads), word(rows.max_rows), 1};
  return step;
}

}  // namespace outrider::device
