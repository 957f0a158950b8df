// SPDX-License-Identifier: Apache-2.0
// Rows to int8 (kernels/rows.h, quantize_row), and y = x W^T with weights in int8 and int4
// (kernels/products.h, kernels/layout.h).
//
// A block has one tile of 16 outputs and up to 8 rows. Its threads make the exact dot products of 8
// groups at once; then a thread per output adds them group by group, each with one fused
// multiply-add, so that the order of float additions is the processor's. Which rows go together
// changes nothing.
#ifndef OUTRIDER_DEVICE_CUDA_KERNELS_PRODUCT_CUH_
#define OUTRIDER_DEVICE_CUDA_KERNELS_PRODUCT_CUH_

#include "device/cuda/kernels/arithmetic.cuh"
#include "device/kernel_steps.h"

namespace outrider::device::cuda {

inline constexpr std::uint32_t kElementsOfGroup = 32;
inline constexpr std::uint32_t kQuads = 8;  // words of a group of one row
inline constexpr std::uint32_t kColumns = 16;

// What is multiplied to get integers up to 127, and what such an integer counts for, of numbers
// whose largest magnitude has these bits; zero: all become 0.
struct ByteScale {
  float inverse;
  float scale;
  bool zero;
};
OUTRIDER_KERNEL_CODE ByteScale byte_scale_of(std::uint32_t largest) {
  const bool tainted = !is_finite(largest);
  const float inverse = divided(127.0F, float_of(largest));
  const bool zero = tainted || !is_finite(bits_of(inverse));
  float scale = divided(float_of(largest), 127.0F);
  if (zero) scale = tainted ? float_of(kNan) : 0.0F;
  return {inverse, scale, zero};
}

// Eight lanes work on a group, four elements each: a word of its values.
OUTRIDER_KERNEL_CODE void quantize_rows(const StepArguments& step) {
  const auto numbers = numbers_of<QuantizeNumbers>(step);
  const std::uint32_t row = block_y();
  if (row >= min_of(range_of<const std::uint32_t>(step, 0)[0], numbers.max_rows)) return;
  const float* const x = range_of<const float>(step, 1) + std::size_t{row} * numbers.k;
  const std::uint32_t n_groups = (numbers.k + kElementsOfGroup - 1) / kElementsOfGroup;
  const std::uint32_t lane = lane_index();
  const std::uint32_t group = block_x() * 8 + lane / kQuads;
  const std::uint32_t quad = lane % kQuads;

  // Sizes of floats are in the order of their bits; infinity and NaN come last.
  float elements[4];
  std::uint32_t largest = 0;
  OUTRIDER_UNROLL
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t at = group * kElementsOfGroup + quad * 4 + i;
    elements[i] = group < n_groups && at < numbers.k ? x[at] : 0.0F;
    largest = max_of(largest, magnitude_of(bits_of(elements[i])));
  }
  OUTRIDER_UNROLL
  for (std::uint32_t bit = 1; bit < kQuads; bit *= 2) {
    largest = max_of(largest, from_beside(largest, bit));
  }
  const ByteScale by = byte_scale_of(largest);
  std::uint32_t word = 0;
  int sum = 0;
  OUTRIDER_UNROLL
  for (std::uint32_t i = 0; i < 4; ++i) {
    const int q = by.zero ? 0 : nearest_int(product_of(elements[i], by.inverse));
    word |= (static_cast<std::uint32_t>(q) & 0xffU) << (8 * i);
    sum += q;
  }
  OUTRIDER_UNROLL
  for (std::uint32_t bit = 1; bit < kQuads; bit *= 2) sum += from_beside(sum, bit);
  if (group >= n_groups) return;
  const std::size_t place = std::size_t{group} * numbers.slots + row;
  range_of<std::uint32_t>(step, 2)[place * kQuads + quad] = word;
  if (quad != 0) return;
  range_of<float>(step, 3)[place] = by.scale;
  range_of<std::int32_t>(step, 4)[place] = sum;
  range_of<float>(step, 5)[place] = by.zero ? by.scale : product_of(float_of_int(sum), by.scale);
}

// The 16 bits of a column in a row of 16 of them.
OUTRIDER_KERNEL_CODE std::uint32_t half_word(const std::uint32_t* words, std::uint32_t column) {
  return words[column / 2] >> (column % 2 * 16) & 0xffffU;
}

// Per two groups 2 x [8][16][4] bytes, then their f16 scales, 2 x [16].
struct Int8Weights {
  static constexpr bool kHasMinimums = false;
  static constexpr std::uint32_t kPairWords = 272;
  static constexpr std::uint32_t kCodeWords = 128;  // of one group
  static constexpr std::uint32_t kScaleWords = 8;

  OUTRIDER_KERNEL_CODE static std::size_t tile_words(std::uint32_t n_groups) {
    return std::size_t{(n_groups + 1) / 2} * kPairWords;
  }
  OUTRIDER_KERNEL_CODE static void load(const std::uint32_t* tile, std::uint32_t group,
                                        std::uint32_t column, std::uint32_t codes[kQuads]) {
    const std::uint32_t* const at =
        tile + std::size_t{group / 2} * kPairWords + group % 2 * kCodeWords + column;
    OUTRIDER_UNROLL
    for (std::uint32_t quad = 0; quad < kQuads; ++quad) codes[quad] = at[quad * kColumns];
  }
  OUTRIDER_KERNEL_CODE static float scale(const std::uint32_t* tile, std::uint32_t group,
                                          std::uint32_t column) {
    const std::uint32_t* const at = tile + std::size_t{group / 2} * kPairWords;
    return from_f16(half_word(at + 2 * kCodeWords + group % 2 * kScaleWords, column));
  }
  OUTRIDER_KERNEL_CODE static float minimum(const std::uint32_t*, std::uint32_t, std::uint32_t) {
    return 0.0F;
  }
};

// Per group [4][16][4] bytes with quad r in their low and quad r + 4 in their high halves, then f16
// scales and minimums, [16] each.
struct Int4Weights {
  static constexpr bool kHasMinimums = true;
  static constexpr std::uint32_t kGroupWords = 80;
  static constexpr std::uint32_t kCodeWords = 64;
  static constexpr std::uint32_t kScaleWords = 8;
  static constexpr std::uint32_t kLowHalves = 0x0f0f0f0fU;

  OUTRIDER_KERNEL_CODE static std::size_t tile_words(std::uint32_t n_groups) {
    return std::size_t{n_groups} * kGroupWords;
  }
  OUTRIDER_KERNEL_CODE static void load(const std::uint32_t* tile, std::uint32_t group,
                                        std::uint32_t column, std::uint32_t codes[kQuads]) {
    const std::uint32_t* const at = tile + std::size_t{group} * kGroupWords + column;
    OUTRIDER_UNROLL
    for (std::uint32_t quad = 0; quad < kQuads / 2; ++quad) {
      const std::uint32_t both = at[quad * kColumns];
      codes[quad] = both & kLowHalves;
      codes[quad + kQuads / 2] = both >> 4 & kLowHalves;
    }
  }
  OUTRIDER_KERNEL_CODE static float scale(const std::uint32_t* tile, std::uint32_t group,
                                          std::uint32_t column) {
    return from_f16(half_word(tile + std::size_t{group} * kGroupWords + kCodeWords, column));
  }
  OUTRIDER_KERNEL_CODE static float minimum(const std::uint32_t* tile, std::uint32_t group,
                                            std::uint32_t column) {
    const std::uint32_t* const at = tile + std::size_t{group} * kGroupWords + kCodeWords;
    return from_f16(half_word(at + kScaleWords, column));
  }
};

inline constexpr std::uint32_t kGroupsTogether = 8;
// A thread has one dot product of each row, and then one output of 8 rows.
inline constexpr std::uint32_t kProductThreads = kGroupsTogether * kColumns;

template <std::uint32_t kRows>
struct ProductMemory {
  int dots[kRows][kGroupsTogether + 1][kColumns];  // a line more, for the banks' sake
};

template <class Weights, std::uint32_t kRows>
OUTRIDER_KERNEL_CODE void multiply(const StepArguments& step) {
  static_assert(kRows * kColumns <= kProductThreads);
  const auto numbers = numbers_of<ProductNumbers>(step);
  const std::uint32_t n_rows = min_of(range_of<const std::uint32_t>(step, 0)[0], numbers.max_rows);
  const std::uint32_t first_row = block_y() * kRows;
  if (first_row >= n_rows) return;
  const std::uint32_t rows_here = min_of(n_rows - first_row, kRows);
  const std::uint32_t n_groups = (numbers.k + kElementsOfGroup - 1) / kElementsOfGroup;
  const std::uint32_t* const tile =
      range_of<const std::uint32_t>(step, 1) + block_x() * Weights::tile_words(n_groups);
  const std::uint32_t* const values = range_of<const std::uint32_t>(step, 2);
  const float* const x_scales = range_of<const float>(step, 3);
  const float* const scaled_sums = Weights::kHasMinimums ? range_of<const float>(step, 4) : nullptr;
  float* const y = range_of<float>(step, Weights::kHasMinimums ? 5 : 4);
  ProductMemory<kRows>& memory = block_memory<ProductMemory<kRows>>();

  const std::uint32_t lane = lane_index();
  const std::uint32_t column = lane % kColumns;
  const std::uint32_t dot_group = lane / kColumns;  // of the groups that go together
  const std::uint32_t row = lane / kColumns;        // of the rows that go together
  float sum = 0.0F;
  for (std::uint32_t begin = 0; begin < n_groups; begin += kGroupsTogether) {
    const std::uint32_t here = min_of(n_groups - begin, kGroupsTogether);
    if (dot_group < here) {
      const std::uint32_t group = begin + dot_group;
      std::uint32_t codes[kQuads];
      Weights::load(tile, group, column, codes);
      const std::uint32_t* inputs =
          values + (std::size_t{group} * numbers.slots + first_row) * kQuads;
      for (std::uint32_t i = 0; i < rows_here; ++i) {
        int dot = 0;
        OUTRIDER_UNROLL
        for (std::uint32_t quad = 0; quad < kQuads; ++quad) {
          dot = add_dot(codes[quad], inputs[quad], dot);
        }
        memory.dots[i][dot_group][column] = dot;
        inputs += kQuads;
      }
    }
    wait_for_block();
    if (row < rows_here) {
      for (std::uint32_t i = 0; i < here; ++i) {
        const std::uint32_t group = begin + i;
        const std::size_t input_at = std::size_t{group} * numbers.slots + first_row + row;
        const float scale = product_of(Weights::scale(tile, group, column), x_scales[input_at]);
        sum = fused(float_of_int(memory.dots[row][i][column]), scale, sum);
        if constexpr (Weights::kHasMinimums) {
          sum = fused(scaled_sums[input_at], Weights::minimum(tile, group, column), sum);
        }
      }
    }
    wait_for_block();
  }
  const std::uint32_t output = block_x() * kColumns + column;
  if (row < rows_here && output < numbers.n_columns) {
    y[std::size_t{first_row + row} * numbers.y_stride + numbers.y_first + output] = sum;
  }
}

}  // namespace outrider::device::cuda

#endif  // OUTRIDER_DEVICE_CUDA_KERNELS_PRODUCT_CUH_
