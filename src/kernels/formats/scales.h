// The scales of quantised weights: how they lie in a tile and how they turn the exact integer dot
// products of a group into floats. Each fixes an order of float operations, the same on every
// table; x_scale, x_sum (of the group's quantised inputs) and x_scaled_sum = x_sum * x_scale are
// the inputs'. A product of an f16 and an integer of at most 13 bits is exact in f32.
//
// A block is kGroups groups: the codes of all, then the sub-scales of all (kGroupBytes each), then
// what the block has but once (kBlockBytes). Each of the scales offers:
//   kParts    dot products that it takes of a group: 1 of all 32 elements, 2 of 16 each
//   put_group(p, column, parts, group), put_block(p, column, parts, block): from a row's numbers
//   add<V, R>(group_scales, block_scales, inputs, dots, sum): adds a group to sum(r), r < R
// Internal linkage, as everything compiled with instruction-set flags.
#ifndef OUTRIDER_KERNELS_FORMATS_SCALES_H_
#define OUTRIDER_KERNELS_FORMATS_SCALES_H_

#include <cstddef>
#include <cstdint>

#include "kernels/layout.h"
#include "kernels/table.h"

namespace outrider::kernels {
namespace {

constexpr std::size_t kByteOfEach = kTileColumns;
constexpr std::size_t kF16OfEach = std::size_t{kTileColumns} * 2;
constexpr std::size_t kF32OfEach = std::size_t{kTileColumns} * 4;

template <class Number>
void put_number(std::byte* p, int column, Number number) {
  __builtin_memcpy(p + static_cast<std::size_t>(column) * sizeof number, &number, sizeof number);
}

template <class V>
[[gnu::always_inline]] inline V load_f16_at(const std::byte* p) {
  return V::load_f16(reinterpret_cast<const std::uint16_t*>(p));
}

// What the float steps read of R adjacent rows of inputs at one group.
struct ScaledInputs {
  const float* scales;            // (R)
  const float* scaled_sums;       // (R)
  const std::int32_t* sums;       // (R)
  const std::int32_t* half_sums;  // (R): of the first 16
};

// sum = fma(dot, scale * x_scale, sum)
template <class V, int R, class Sum>
[[gnu::always_inline]] inline void add_scaled(const V (&dots)[R], V scale,
                                              const ScaledInputs& inputs, const Sum& sum) {
  for (int r = 0; r < R; ++r) {
    sum(r) = fma(dots[r], scale * V::broadcast(inputs.scales[r]), sum(r));
  }
}

// sum = fma(x_scaled_sum, minimum, sum)
template <class V, int R, class Sum>
[[gnu::always_inline]] inline void add_minimum(V minimum, const ScaledInputs& inputs,
                                               const Sum& sum) {
  for (int r = 0; r < R; ++r) {
    sum(r) = fma(V::broadcast(inputs.scaled_sums[r]), minimum, sum(r));
  }
}

// f16 scale for each group: sum = fma(dot, scale * x_scale, sum).
struct F16Scale {
  static constexpr int kParts = 1;
  static constexpr std::size_t kGroupBytes = kF16OfEach;
  static constexpr std::size_t kBlockBytes = 0;

  static void put_group(std::byte* p, int column, const RowNumbers& row, int group) {
    put_number(p, column, row.scales[group]);
  }
  static void put_block(std::byte*, int, const RowNumbers&, int) {}

  template <class V, int R, class Sum>
  [[gnu::always_inline]] static void add(const std::byte* of_group, const std::byte*,
                                         const ScaledInputs& inputs, const V (&dots)[1][R],
                                         const Sum& sum) {
    add_scaled<V, R>(dots[0], load_f16_at<V>(of_group), inputs, sum);
  }
};

// f16 scale and minimum for each group: as F16Scale, then sum = fma(x_scaled_sum, minimum, sum).
struct F16ScaleAndMinimum {
  static constexpr int kParts = 1;
  static constexpr std::size_t kGroupBytes = 2 * kF16OfEach;
  static constexpr std::size_t kBlockBytes = 0;

  static void put_group(std::byte* p, int column, const RowNumbers& row, int group) {
    put_number(p, column, row.scales[group]);
    put_number(p + kF16OfEach, column, row.minimums[group]);
  }
  static void put_block(std::byte*, int, const RowNumbers&, int) {}

  template <class V, int R, class Sum>
  [[gnu::always_inline]] static void add(const std::byte* of_group, const std::byte*,
                                         const ScaledInputs& inputs, const V (&dots)[1][R],
                                         const Sum& sum) {
    add_scaled<V, R>(dots[0], load_f16_at<V>(of_group), inputs, sum);
    add_minimum<V, R>(load_f16_at<V>(of_group + kF16OfEach), inputs, sum);
  }
};

// f32 scale for each group, a power of two: as F16Scale.
struct F32Scale {
  static constexpr int kParts = 1;
  static constexpr std::size_t kGroupBytes = kF32OfEach;
  static constexpr std::size_t kBlockBytes = 0;

  static void put_group(std::byte* p, int column, const RowNumbers& row, int group) {
    put_number(p, column, row.f32_scales[group]);
  }
  static void put_block(std::byte*, int, const RowNumbers&, int) {}

  template <class V, int R, class Sum>
  [[gnu::always_inline]] static void add(const std::byte* of_group, const std::byte*,
                                         const ScaledInputs& inputs, const V (&dots)[1][R],
                                         const Sum& sum) {
    add_scaled<V, R>(dots[0], V::load(reinterpret_cast<const float*>(of_group)), inputs, sum);
  }
};

// A signed byte s for each group under an f16 d for each block:
// sum = fma(dot, (d * s) * x_scale, sum).
struct SignedSubScale {
  static constexpr int kParts = 1;
  static constexpr std::size_t kGroupBytes = kByteOfEach;
  static constexpr std::size_t kBlockBytes = kF16OfEach;

  static void put_group(std::byte* p, int column, const RowNumbers& row, int group) {
    put_number(p, column, row.sub_scales[group]);
  }
  static void put_block(std::byte* p, int column, const RowNumbers& row, int block) {
    put_number(p, column, row.scales[block]);
  }

  template <class V, int R, class Sum>
  [[gnu::always_inline]] static void add(const std::byte* of_group, const std::byte* of_block,
                                         const ScaledInputs& inputs, const V (&dots)[1][R],
                                         const Sum& sum) {
    add_scaled<V, R>(dots[0], load_f16_at<V>(of_block) * V::load_signed_bytes(of_group), inputs,
                     sum);
  }
};

// Unsigned bytes s and m for each group under an f16 pair d and e for each block, e the minimum's
// scale with its sign changed: sum = fma(dot, (d * s) * x_scale, sum), then
// sum = fma(x_scaled_sum, e * m, sum).
struct SubScaleAndMinimum {
  static constexpr int kParts = 1;
  static constexpr std::size_t kGroupBytes = 2 * kByteOfEach;
  static constexpr std::size_t kBlockBytes = 2 * kF16OfEach;
  static constexpr std::uint16_t kSign = 0x8000;

  static void put_group(std::byte* p, int column, const RowNumbers& row, int group) {
    put_number(p, column, row.sub_scales[group]);
    put_number(p + kByteOfEach, column, row.sub_minimums[group]);
  }
  static void put_block(std::byte* p, int column, const RowNumbers& row, int block) {
    put_number(p, column, row.scales[block]);
    put_number(p + kF16OfEach, column, static_cast<std::uint16_t>(row.minimums[block] ^ kSign));
  }

  template <class V, int R, class Sum>
  [[gnu::always_inline]] static void add(const std::byte* of_group, const std::byte* of_block,
                                         const ScaledInputs& inputs, const V (&dots)[1][R],
                                         const Sum& sum) {
    add_scaled<V, R>(dots[0], load_f16_at<V>(of_block) * V::load_bytes(of_group), inputs, sum);
    add_minimum<V, R>(load_f16_at<V>(of_block + kF16OfEach) * V::load_bytes(of_group + kByteOfEach),
                      inputs, sum);
  }
};

// s0 * dot0 + s1 * dot1 of the two halves of a group. Integers below 2^24, so that the floats are
// exact: 2 * (16 * 32 * 127) * 128 = 0.99 * 2^24 of six-bit codes less 32 and signed bytes.
template <class V>
[[gnu::always_inline]] inline V combined(V first, V second, V first_scale, V second_scale) {
  return fma(second, second_scale, first * first_scale);
}

// Signed bytes s0 and s1 for the halves of each group under an f16 d for each block:
// sum = fma(s0 * dot0 + s1 * dot1, d * x_scale, sum), the integers exact.
struct SignedHalfScales {
  static constexpr int kParts = 2;
  static constexpr std::size_t kGroupBytes = 2 * kByteOfEach;
  static constexpr std::size_t kBlockBytes = kF16OfEach;

  static void put_group(std::byte* p, int column, const RowNumbers& row, int group) {
    put_number(p, column, row.sub_scales[2 * group]);
    put_number(p + kByteOfEach, column, row.sub_scales[2 * group + 1]);
  }
  static void put_block(std::byte* p, int column, const RowNumbers& row, int block) {
    put_number(p, column, row.scales[block]);
  }

  template <class V, int R, class Sum>
  [[gnu::always_inline]] static void add(const std::byte* of_group, const std::byte* of_block,
                                         const ScaledInputs& inputs, const V (&dots)[2][R],
                                         const Sum& sum) {
    const V first = V::load_signed_bytes(of_group);
    const V second = V::load_signed_bytes(of_group + kByteOfEach);
    V whole[R];
    for (int r = 0; r < R; ++r) whole[r] = combined(dots[0][r], dots[1][r], first, second);
    add_scaled<V, R>(whole, load_f16_at<V>(of_block), inputs, sum);
  }
};

// Unsigned bytes s0, s1, m0 and m1 for the halves of each group under an f16 pair as in
// SubScaleAndMinimum: sum = fma(s0 * dot0 + s1 * dot1, d * x_scale, sum), then
// sum = fma(m0 * x_sum0 + m1 * x_sum1, e * x_scale, sum), the integers exact.
struct HalfScalesAndMinimums {
  static constexpr int kParts = 2;
  static constexpr std::size_t kGroupBytes = 4 * kByteOfEach;
  static constexpr std::size_t kBlockBytes = 2 * kF16OfEach;

  static void put_group(std::byte* p, int column, const RowNumbers& row, int group) {
    for (int half = 0; half < 2; ++half) {
      put_number(p + static_cast<std::size_t>(half) * kByteOfEach, column,
                 row.sub_scales[2 * group + half]);
      put_number(p + static_cast<std::size_t>(2 + half) * kByteOfEach, column,
                 row.sub_minimums[2 * group + half]);
    }
  }
  static void put_block(std::byte* p, int column, const RowNumbers& row, int block) {
    SubScaleAndMinimum::put_block(p, column, row, block);
  }

  template <class V, int R, class Sum>
  [[gnu::always_inline]] static void add(const std::byte* of_group, const std::byte* of_block,
                                         const ScaledInputs& inputs, const V (&dots)[2][R],
                                         const Sum& sum) {
    V whole[R];
    {
      const V first = V::load_bytes(of_group);
      const V second = V::load_bytes(of_group + kByteOfEach);
      for (int r = 0; r < R; ++r) whole[r] = combined(dots[0][r], dots[1][r], first, second);
    }
    add_scaled<V, R>(whole, load_f16_at<V>(of_block), inputs, sum);
    const V first = V::load_bytes(of_group + 2 * kByteOfEach);
    const V second = V::load_bytes(of_group + 3 * kByteOfEach);
    for (int r = 0; r < R; ++r) {
      const int half = inputs.half_sums[r];
      whole[r] = combined(V::broadcast(static_cast<float>(half)),
                          V::broadcast(static_cast<float>(inputs.sums[r] - half)), first, second);
    }
    add_scaled<V, R>(whole, load_f16_at<V>(of_block + kF16OfEach), inputs, sum);
  }
};

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_FORMATS_SCALES_H_
