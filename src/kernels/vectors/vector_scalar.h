// SPDX-License-Identifier: Apache-2.0
// The vector of the scalar table (float_vector.h): plain loops over 16 lanes.
// Internal linkage, as the other vectors have.
#ifndef OUTRIDER_KERNELS_VECTORS_VECTOR_SCALAR_H_
#define OUTRIDER_KERNELS_VECTORS_VECTOR_SCALAR_H_

#include <cstddef>
#include <cstdint>

#include "kernels/table.h"
#include "kernels/vectors/float_vector.h"

namespace outrider::kernels {
namespace {

float from_bf16(std::uint16_t bits) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
}

float from_f16(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fU;
  const std::uint32_t mantissa = bits & 0x3ffU;
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24, exact
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return __builtin_bit_cast(float, sign | __builtin_bit_cast(std::uint32_t, magnitude));
  }
  const std::uint32_t wide = exponent == 0x1f ? 0xffU : exponent + 112;
  return __builtin_bit_cast(float, sign | (wide << 23) | (mantissa << 13));
}

struct Vector {
  // Many rows at once gain nothing here; these numbers keep the code small.
  static constexpr int kAccumulators = 4;
  static constexpr int kSumsBesideInputs = 4;
  static constexpr int kMaxRows = 4;
  static constexpr int kOneRowTiles = 2;
  static constexpr int kAttentionSums = 4;
  static constexpr int kStatesWeighed = 1;
  static constexpr int kDoubles = 2;
  template <class Bits>
  static Bits multiply_low_halves(Bits a, Bits b) {
    for (int i = 0; i < kDoubles; ++i) a[i] = (a[i] & 0xFFFFFFFFU) * (b[i] & 0xFFFFFFFFU);
    return a;
  }

  float lane[kLanes];

  // Sums of integers below 2^31, each term exact as a float.
  struct Integers {
    std::int32_t lane[kLanes];

    static Integers zero() { return {}; }
    void add_exact(const Vector& numbers) {
      for (int i = 0; i < kLanes; ++i) lane[i] += static_cast<std::int32_t>(numbers.lane[i]);
    }
    Vector rounded() const {
      return from([&](int i) { return static_cast<float>(lane[i]); });
    }
  };

  template <class Function>
  static Vector from(Function function) {
    Vector result;
    for (int i = 0; i < kLanes; ++i) result.lane[i] = function(i);
    return result;
  }
  static Vector zero() { return broadcast(0.0F); }
  static Vector broadcast(float value) {
    return from([=](int) { return value; });
  }
  static Vector broadcast_anew(const float* p) { return broadcast(*p); }
  static Vector load(const float* p) {
    return from([=](int i) { return p[i]; });
  }
  static Vector load_even(const std::uint16_t* p) {
    return from([=](int i) { return from_bf16(p[2 * i]); });
  }
  static Vector load_odd(const std::uint16_t* p) { return load_even(p + 1); }
  static Vector load_first(const float* p, int n) {
    float all[kLanes] = {};
    for (int i = 0; i < n; ++i) all[i] = p[i];
    return load(all);
  }
  static Vector load_mixed(const float* p) { return load(p); }
  static Vector load_mixed(const std::uint16_t* p) {
    return from([=](int i) { return from_bf16(p[i]); });
  }
  template <class Element>
  static Vector in_order(const Vector& value) {
    return value;
  }
  static Vector load_f16(const std::uint16_t* p) {
    return from([=](int i) { return from_f16(p[i]); });
  }
  static Vector load_bytes(const std::byte* p) {
    return from([=](int i) { return static_cast<float>(static_cast<std::uint8_t>(p[i])); });
  }
  static Vector load_signed_bytes(const std::byte* p) {
    return from([=](int i) { return static_cast<float>(static_cast<std::int8_t>(p[i])); });
  }
  void store(float* p) const {
    for (int i = 0; i < kLanes; ++i) p[i] = lane[i];
  }
  void store_first(float* p, int n) const {
    for (int i = 0; i < n; ++i) p[i] = lane[i];
  }
  void store_int8(std::int8_t* p) const {
    for (int i = 0; i < kLanes; ++i) p[i] = static_cast<std::int8_t>(lane[i]);
  }
  void store_int16(std::int16_t* p) const {
    constexpr float kShift = 0x1.8p23F;  // leaves no bit for a fraction
    for (int i = 0; i < kLanes; ++i) {
      p[i] = static_cast<std::int16_t>((lane[i] + kShift) - kShift);
    }
  }
};

[[maybe_unused]] Vector operator+(const Vector& a, const Vector& b) {
  return Vector::from([&](int i) { return a.lane[i] + b.lane[i]; });
}
[[maybe_unused]] Vector operator-(const Vector& a, const Vector& b) {
  return Vector::from([&](int i) { return a.lane[i] - b.lane[i]; });
}
[[maybe_unused]] Vector operator*(const Vector& a, const Vector& b) {
  return Vector::from([&](int i) { return a.lane[i] * b.lane[i]; });
}
[[maybe_unused]] Vector operator/(const Vector& a, const Vector& b) {
  return Vector::from([&](int i) { return a.lane[i] / b.lane[i]; });
}
[[maybe_unused]] Vector fma(const Vector& a, const Vector& b, const Vector& c) {
  return Vector::from([&](int i) { return __builtin_fmaf(a.lane[i], b.lane[i], c.lane[i]); });
}
[[maybe_unused]] Vector max(const Vector& a, const Vector& b) {
  return Vector::from([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
}
[[maybe_unused]] Vector min(const Vector& a, const Vector& b) {
  return Vector::from([&](int i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
}
[[maybe_unused]] Vector absolute(const Vector& a) {
  return Vector::from([&](int i) { return __builtin_fabsf(a.lane[i]); });
}
[[maybe_unused]] Vector shift_left_23(const Vector& a) {
  return Vector::from([&](int i) {
    return __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, a.lane[i]) << 23);
  });
}

[[maybe_unused]] float reduce_add(Vector a) {
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) a.lane[i] += a.lane[i + width];
  }
  return a.lane[0];
}
[[maybe_unused]] float reduce_max(Vector a) {
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) {
      a.lane[i] = a.lane[i] > a.lane[i + width] ? a.lane[i] : a.lane[i + width];
    }
  }
  return a.lane[0];
}

static_assert(FloatVector<Vector>);

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_VECTORS_VECTOR_SCALAR_H_
