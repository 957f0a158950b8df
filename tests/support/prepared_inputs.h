// SPDX-License-Identifier: Apache-2.0
// Rows of inputs, prepared by a kernel table for products with quantised weights.
#ifndef OUTRIDER_TESTS_SUPPORT_PREPARED_INPUTS_H_
#define OUTRIDER_TESTS_SUPPORT_PREPARED_INPUTS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/table.h"

namespace outrider::test {

// x (n_rows, k) in groups, and also in blocks if k is a multiple of the block. Slots beyond n_rows
// hold numbers that must not affect results.
struct PreparedInputs {
  int n_rows;
  int k;
  int slots;
  std::vector<std::int8_t> values;
  std::vector<float> scales;
  std::vector<std::int32_t> sums;
  std::vector<float> scaled_sums;
  std::vector<std::int8_t> block_values;
  std::vector<float> block_scales;
  std::vector<std::int16_t> group_sums;
  std::vector<float> float_sums;
  std::vector<std::int16_t> half_sums;

  PreparedInputs(const kernels::KernelTable& table, const std::vector<float>& x, int rows,
                 int depth, int room)
      : n_rows(rows), k(depth), slots(room) {
    using namespace kernels;
    const auto places = static_cast<std::size_t>(groups_of(depth) * slots);
    values.assign(places * kGroup, 77);
    scales.assign(places, NAN);
    sums.assign(places, 99);
    scaled_sums.assign(places, NAN);
    const auto block_places = static_cast<std::size_t>(blocks_of(depth) * slots);
    block_values.assign(block_places * kBlock, 77);
    block_scales.assign(block_places, NAN);
    group_sums.assign(block_places * kBlockGroups, 99);
    float_sums.assign(block_places * kBlockGroups, NAN);
    half_sums.assign(block_places * kBlockGroups * 2, 99);
    for (int row = 0; row < rows; ++row) {
      const auto at = static_cast<std::size_t>(row);
      const float* const its = x.data() + static_cast<std::ptrdiff_t>(row) * depth;
      table.quantize_row(its, depth,
                         {.values = &values[at * kGroup],
                          .scales = &scales[at],
                          .sums = &sums[at],
                          .scaled_sums = &scaled_sums[at],
                          .slots = slots});
      if (depth % kBlock != 0) continue;
      table.quantize_blocks(its, depth,
                            {.values = &block_values[at * kBlockRun],
                             .scales = &block_scales[at],
                             .group_sums = &group_sums[at * kBlockGroups],
                             .float_sums = &float_sums[at * kBlockGroups],
                             .half_sums = &half_sums[at * kBlockGroups * 2],
                             .slots = slots});
    }
  }

  // The arguments of a product of the first n rows, without tiles and results.
  kernels::MatmulArgs args(int n) const {
    kernels::MatmulArgs args{};
    args.k = k;
    args.n_rows = n;
    args.slots = slots;
    args.quantized = values.data();
    args.quantized_scales = scales.data();
    args.quantized_sums = sums.data();
    args.scaled_sums = scaled_sums.data();
    args.block_values = block_values.data();
    args.block_scales = block_scales.data();
    args.group_sums = group_sums.data();
    args.float_sums = float_sums.data();
    args.half_sums = half_sums.data();
    return args;
  }
};

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PREPARED_INPUTS_H_
