// SPDX-License-Identifier: Apache-2.0
// The vector and the bytes of the files compiled for 64-bit ARM with dot products (float_vector.h,
// formats/codes.h): sixteen lanes are four registers. Internal linkage, as everything compiled
// with instruction-set flags.
#ifndef OUTRIDER_KERNELS_VECTORS_VECTOR_NEON_H_
#define OUTRIDER_KERNELS_VECTORS_VECTOR_NEON_H_

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "kernels/vectors/float_vector.h"

namespace outrider::kernels {
namespace {

struct Vector {
  // 32 registers, four to a vector: as many vectors as AVX2 has, so the numbers are avx2.cc's. (Not
  // measured on such a processor.)
  static constexpr int kAccumulators = 6;
  static constexpr int kSumsBesideInputs = 4;
  static constexpr int kMaxRows = 6;
  static constexpr int kOneRowTiles = 4;
  static constexpr int kAttentionSums = 4;
  static constexpr int kStatesWeighed = 1;
  static constexpr int kDoubles = 2;
  template <class Bits>
  static Bits multiply_low_halves(Bits a, Bits b) {
    return __builtin_bit_cast(Bits, vmull_u32(vmovn_u64(__builtin_bit_cast(uint64x2_t, a)),
                                              vmovn_u64(__builtin_bit_cast(uint64x2_t, b))));
  }

  static constexpr int kQuarters = 4;
  float32x4_t quarter[kQuarters];  // lanes 0..3, 4..7, 8..11, 12..15

  template <class Function>
  [[gnu::always_inline]] static Vector from(const Function& function) {
    return {{function(0), function(1), function(2), function(3)}};
  }

  // Sums of integers below 2^31, each term exact as a float.
  struct Integers {
    int32x4_t quarter[kQuarters];

    static Integers zero() { return {}; }
    void add_exact(const Vector& numbers) {
      for (int i = 0; i < kQuarters; ++i) {
        quarter[i] = vaddq_s32(quarter[i], vcvtq_s32_f32(numbers.quarter[i]));
      }
    }
    Vector rounded() const {
      return from([&](int i) { return vcvtq_f32_s32(quarter[i]); });
    }
  };

  static Vector zero() { return broadcast(0.0F); }
  static Vector broadcast(float value) {
    return from([=](int) { return vdupq_n_f32(value); });
  }
  // Loads at the place of use: the asm makes the pointer unknown to the compiler, so it cannot
  // merge the load with another, whose result it would have to keep.
  static Vector broadcast_anew(const float* p) {
    __asm__ volatile("" : "+r"(p));
    return broadcast(*p);
  }
  static Vector load(const float* p) {
    return from([=](int i) { return vld1q_f32(p + 4 * i); });
  }
  static Vector load_first(const float* p, int n) {
    float all[4 * kQuarters] = {};
    __builtin_memcpy(all, p, static_cast<std::size_t>(n) * sizeof(float));
    return load(all);
  }
  static Vector load_mixed(const float* p) { return load(p); }
  // In order here, which costs nothing: an instruction widens four.
  static Vector load_mixed(const std::uint16_t* p) {
    return from([=](int i) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p + 4 * i), 16)); });
  }
  template <class Element>
  static Vector in_order(Vector value) {
    return value;
  }
  static Vector load_even(const std::uint16_t* p) {
    return from([=](int i) { return vreinterpretq_f32_u32(vshlq_n_u32(load_pairs(p, i), 16)); });
  }
  static Vector load_odd(const std::uint16_t* p) {
    const uint32x4_t odd_bits = vdupq_n_u32(0xffff0000U);
    return from(
        [=](int i) { return vreinterpretq_f32_u32(vandq_u32(load_pairs(p, i), odd_bits)); });
  }
  static Vector load_f16(const std::uint16_t* p) {
    return from([=](int i) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p + 4 * i))); });
  }
  static Vector load_bytes(const std::byte* p) {
    const uint8x16_t bytes = vld1q_u8(reinterpret_cast<const std::uint8_t*>(p));
    const uint16x8_t low = vmovl_u8(vget_low_u8(bytes));
    const uint16x8_t high = vmovl_high_u8(bytes);
    return {{vcvtq_f32_u32(vmovl_u16(vget_low_u16(low))), vcvtq_f32_u32(vmovl_high_u16(low)),
             vcvtq_f32_u32(vmovl_u16(vget_low_u16(high))), vcvtq_f32_u32(vmovl_high_u16(high))}};
  }
  static Vector load_signed_bytes(const std::byte* p) {
    const int8x16_t bytes = vld1q_s8(reinterpret_cast<const std::int8_t*>(p));
    const int16x8_t low = vmovl_s8(vget_low_s8(bytes));
    const int16x8_t high = vmovl_high_s8(bytes);
    return {{vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_high_s16(low)),
             vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_high_s16(high))}};
  }
  void store(float* p) const {
    for (int i = 0; i < kQuarters; ++i) vst1q_f32(p + 4 * i, quarter[i]);
  }
  void store_first(float* p, int n) const {
    float all[4 * kQuarters];
    store(all);
    __builtin_memcpy(p, all, static_cast<std::size_t>(n) * sizeof(float));
  }
  void store_int8(std::int8_t* p) const {
    vst1q_s8(p, vmovn_high_s16(vmovn_s16(words(0)), words(2)));
  }
  void store_int16(std::int16_t* p) const {
    vst1q_s16(p, words(0));
    vst1q_s16(p + 8, words(2));
  }

 private:
  static uint32x4_t load_pairs(const std::uint16_t* p, int i) {
    return vreinterpretq_u32_u16(vld1q_u16(p + 8 * i));
  }
  // Two registers as 16-bit words, rounded to nearest even.
  int16x8_t words(int first) const {
    return vmovn_high_s32(vmovn_s32(vcvtnq_s32_f32(quarter[first])),
                          vcvtnq_s32_f32(quarter[first + 1]));
  }
};

// a > b ? a : b, as float_vector.h requires: a NaN in b passes, one in a does not. (The
// instructions of that name let either pass.)
[[maybe_unused]] float32x4_t larger(float32x4_t a, float32x4_t b) {
  return vbslq_f32(vcgtq_f32(a, b), a, b);
}
[[maybe_unused]] float32x4_t smaller(float32x4_t a, float32x4_t b) {
  return vbslq_f32(vcltq_f32(a, b), a, b);
}

[[maybe_unused]] Vector operator+(Vector a, Vector b) {
  return Vector::from([&](int i) { return vaddq_f32(a.quarter[i], b.quarter[i]); });
}
[[maybe_unused]] Vector operator-(Vector a, Vector b) {
  return Vector::from([&](int i) { return vsubq_f32(a.quarter[i], b.quarter[i]); });
}
[[maybe_unused]] Vector operator*(Vector a, Vector b) {
  return Vector::from([&](int i) { return vmulq_f32(a.quarter[i], b.quarter[i]); });
}
[[maybe_unused]] Vector operator/(Vector a, Vector b) {
  return Vector::from([&](int i) { return vdivq_f32(a.quarter[i], b.quarter[i]); });
}
[[maybe_unused]] Vector fma(Vector a, Vector b, Vector c) {
  return Vector::from([&](int i) { return vfmaq_f32(c.quarter[i], a.quarter[i], b.quarter[i]); });
}
[[maybe_unused]] Vector max(Vector a, Vector b) {
  return Vector::from([&](int i) { return larger(a.quarter[i], b.quarter[i]); });
}
[[maybe_unused]] Vector min(Vector a, Vector b) {
  return Vector::from([&](int i) { return smaller(a.quarter[i], b.quarter[i]); });
}
[[maybe_unused]] Vector absolute(Vector a) {
  return Vector::from([&](int i) { return vabsq_f32(a.quarter[i]); });
}
[[maybe_unused]] Vector shift_left_23(Vector a) {
  return Vector::from([&](int i) {
    return vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(a.quarter[i]), 23));
  });
}

// Lane j adds lane j + 8, then j + 4, j + 2, j + 1 (table.h).
[[maybe_unused]] float reduce_add(Vector a) {
  const float32x4_t four =
      vaddq_f32(vaddq_f32(a.quarter[0], a.quarter[2]), vaddq_f32(a.quarter[1], a.quarter[3]));
  return vpadds_f32(vadd_f32(vget_low_f32(four), vget_high_f32(four)));
}
[[maybe_unused]] float reduce_max(Vector a) {
  const float32x4_t four =
      larger(larger(a.quarter[0], a.quarter[2]), larger(a.quarter[1], a.quarter[3]));
  const float32x4_t two = larger(four, vextq_f32(four, four, 2));
  return vgetq_lane_f32(larger(two, vextq_f32(two, two, 1)), 0);
}

static_assert(FloatVector<Vector>);

// A quad of four columns.
struct BytesNeon {
  uint8x16_t bytes;

  static BytesNeon load(const std::byte* p) {
    return {vld1q_u8(reinterpret_cast<const std::uint8_t*>(p))};
  }
  template <int kBits>
  static BytesNeon low_bits() {
    return {vdupq_n_u8((1 << kBits) - 1)};
  }
  static BytesNeon shift_right(BytesNeon b, int n) {
    return {b.bytes >> static_cast<std::uint8_t>(n)};
  }
  static BytesNeon shift_left(BytesNeon b, int n) {
    return {b.bytes << static_cast<std::uint8_t>(n)};
  }
  static BytesNeon lookup(const std::int8_t (&table)[16], BytesNeon b) {
    return {vqtbl1q_u8(vreinterpretq_u8_s8(vld1q_s8(table)), b.bytes)};
  }
};
[[maybe_unused]] BytesNeon operator&(BytesNeon a, BytesNeon b) {
  return {vandq_u8(a.bytes, b.bytes)};
}
[[maybe_unused]] BytesNeon operator|(BytesNeon a, BytesNeon b) {
  return {vorrq_u8(a.bytes, b.bytes)};
}

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_VECTORS_VECTOR_NEON_H_
