// SPDX-License-Identifier: Apache-2.0
// The scales of quantised weights: their layout in a tile, and how they turn the exact integer dot
// products of a group into floats. Each fixes an order of float operations, the same on every
// table. x_scale, x_sum (of the group's quantised inputs) and x_scaled_sum = x_sum * x_scale belong
// to the inputs. A product of an f16 and an integer of at most 13 bits is exact in f32.
//
// A block is kGroups groups: the codes of all, then the sub-scales of all (kGroupBytes each), then
// the data that the block has once (kBlockBytes). Each of the scales of groups offers:
//   put_group(p, column, parts, group), put_block(p, column, parts, block): from a row's numbers
//   add<V, R>(group_scales, block_scales, inputs, dots, sum): adds a group to sum(r), r < R
// Internal linkage, as everything compiled with instruction-set flags.
#ifndef OUTRIDER_KERNELS_FORMATS_SCALES_H_
#define OUTRIDER_KERNELS_FORMATS_SCALES_H_

#include <cstddef>
#include <cstdint>

#include "kernels/layout.h"
#include "kernels/table.h"
#include "kernels/vectors/float_vector.h"

namespace outrider::kernels {
namespace {

constexpr std::size_t kByteOfEach = kTileColumns;
constexpr std::size_t kF16OfEach = std::size_t{kTileColumns} * 2;
constexpr std::size_t kF32OfEach = std::size_t{kTileColumns} * 4;

template <class Number>
void put_number(std::byte* p, int column, Number number) {
  __builtin_memcpy(p + static_cast<std::size_t>(column) * sizeof number, &number, sizeof number);
}

template <FloatVector V>
[[gnu::always_inline]] inline V load_f16_at(const std::byte* p) {
  return V::load_f16(reinterpret_cast<const std::uint16_t*>(p));
}

// The inputs of the float steps: R adjacent rows at one group.
struct ScaledInputs {
  const float* scales;       // (R)
  const float* scaled_sums;  // (R)
};

// sum = fma(dot, scale * x_scale, sum)
template <FloatVector V, int R, class Sum>
[[gnu::always_inline]] inline void add_scaled(const V (&dots)[R], V scale,
                                              const ScaledInputs& inputs, const Sum& sum) {
  for (int r = 0; r < R; ++r) {
    sum(r) = fma(dots[r], scale * V::broadcast(inputs.scales[r]), sum(r));
  }
}

// sum = fma(x_scaled_sum, minimum, sum)
template <FloatVector V, int R, class Sum>
[[gnu::always_inline]] inline void add_minimum(V minimum, const ScaledInputs& inputs,
                                               const Sum& sum) {
  for (int r = 0; r < R; ++r) {
    sum(r) = fma(V::broadcast(inputs.scaled_sums[r]), minimum, sum(r));
  }
}

// f16 scale for each group: sum = fma(dot, scale * x_scale, sum).
struct F16Scale {
  static constexpr std::size_t kGroupBytes = kF16OfEach;
  static constexpr std::size_t kBlockBytes = 0;

  static void put_group(std::byte* p, int column, const RowNumbers& row, int group) {
    put_number(p, column, row.scales[group]);
  }
  static void put_block(std::byte*, int, const RowNumbers&, int) {}

  template <FloatVector V, int R, class Sum>
  [[gnu::always_inline]] static void add(const std::byte* of_group, const std::byte*,
                                         const ScaledInputs& inputs, const V (&dots)[R],
                                         const Sum& sum) {
    add_scaled<V, R>(dots, load_f16_at<V>(of_group), inputs, sum);
  }
};

// f16 scale and minimum for each group: as F16Scale, then sum = fma(x_scaled_sum, minimum, sum).
struct F16ScaleAndMinimum {
  static constexpr std::size_t kGroupBytes = 2 * kF16OfEach;
  static constexpr std::size_t kBlockBytes = 0;

  static void put_group(std::byte* p, int column, const RowNumbers& row, int group) {
    put_number(p, column, row.scales[group]);
    put_number(p + kF16OfEach, column, row.minimums[group]);
  }
  static void put_block(std::byte*, int, const RowNumbers&, int) {}

  template <FloatVector V, int R, class Sum>
  [[gnu::always_inline]] static void add(const std::byte* of_group, const std::byte*,
                                         const ScaledInputs& inputs, const V (&dots)[R],
                                         const Sum& sum) {
    add_scaled<V, R>(dots, load_f16_at<V>(of_group), inputs, sum);
    add_minimum<V, R>(load_f16_at<V>(of_group + kF16OfEach), inputs, sum);
  }
};

// f32 scale for each group, a power of two: as F16Scale.
struct F32Scale {
  static constexpr std::size_t kGroupBytes = kF32OfEach;
  static constexpr std::size_t kBlockBytes = 0;

  static void put_group(std::byte* p, int column, const RowNumbers& row, int group) {
    put_number(p, column, row.f32_scales[group]);
  }
  static void put_block(std::byte*, int, const RowNumbers&, int) {}

  template <FloatVector V, int R, class Sum>
  [[gnu::always_inline]] static void add(const std::byte* of_group, const std::byte*,
                                         const ScaledInputs& inputs, const V (&dots)[R],
                                         const Sum& sum) {
    add_scaled<V, R>(dots, V::load(reinterpret_cast<const float*>(of_group)), inputs, sum);
  }
};

// --- Scales of scales: blocks of 256, integers exact within each ------------------------------
//
// The inputs have one scale for a block, too, so that a block is two exact integers: I, the sum
// over parts of s * dot, and, with minimums, M, the sum of m * x_sum. With d the block's f16 scale,
// and e that of its minimums with its sign changed:
//
//   sum = fma(float(I) * d, x_scale, sum)                    without minimums
//   sum = fma(fma(float(M), e, float(I) * d), x_scale, sum)  with them
//
// float(I) is rounded once, to nearest even. |I| is below 2^31: 256 * 32 * 127 * 128 for q6_k. Each
// of these offers:
//   kParts        dot products for each group: 1 of all 32 elements, 2 of 16 each
//   kMaxScale     of |s|
//   kMinimums     whether there are any
//   scale<V>(of_group, part), minimum<V>(of_group, part)   s and m of the columns, as floats
//   block_scale<V>(of_block), block_minimum<V>(of_block)   d and e
// and the layout: kSigned, whether s is signed; s of all parts first, then m.

template <int kTheParts, bool kTheSigned, int kTheMaxScale, bool kTheMinimums>
struct BlockScales {
  static constexpr int kParts = kTheParts;
  static constexpr bool kSigned = kTheSigned;
  static constexpr int kMaxScale = kTheMaxScale;
  static constexpr bool kMinimums = kTheMinimums;
  static constexpr std::size_t kMinimumsAt = kParts * kByteOfEach;
  static constexpr std::size_t kGroupBytes = (kMinimums ? 2 : 1) * kMinimumsAt;
  static constexpr std::size_t kBlockBytes = (kMinimums ? 2 : 1) * kF16OfEach;
  static constexpr std::uint16_t kSign = 0x8000;

  static void put_group(std::byte* p, int column, const RowNumbers& row, int group) {
    for (int part = 0; part < kParts; ++part) {
      std::byte* const at = p + static_cast<std::size_t>(part) * kByteOfEach;
      put_number(at, column, row.sub_scales[kParts * group + part]);
      if (kMinimums) put_number(at + kMinimumsAt, column, row.sub_minimums[kParts * group + part]);
    }
  }
  static void put_block(std::byte* p, int column, const RowNumbers& row, int block) {
    put_number(p, column, row.scales[block]);
    if (!kMinimums) return;
    put_number(p + kF16OfEach, column, static_cast<std::uint16_t>(row.minimums[block] ^ kSign));
  }

  template <FloatVector V>
  static V scale(const std::byte* of_group, int part) {
    const std::byte* at = of_group + static_cast<std::size_t>(part) * kByteOfEach;
    return kSigned ? V::load_signed_bytes(at) : V::load_bytes(at);
  }
  template <FloatVector V>
  static V minimum(const std::byte* of_group, int part) {
    return V::load_bytes(of_group + kMinimumsAt + static_cast<std::size_t>(part) * kByteOfEach);
  }
  template <FloatVector V>
  static V block_scale(const std::byte* of_block) {
    return load_f16_at<V>(of_block);
  }
  template <FloatVector V>
  static V block_minimum(const std::byte* of_block) {
    return load_f16_at<V>(of_block + kF16OfEach);
  }
};

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_FORMATS_SCALES_H_
