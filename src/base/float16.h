// SPDX-License-Identifier: Apache-2.0
// The two 16-bit float formats, to and from float. Rounding is to nearest, ties to even; NaN stays
// NaN; f16 overflows to infinity and keeps subnormals. Rounding uses integer arithmetic only, so
// the bits are the same on every machine. All functions are thread-safe.
#ifndef OUTRIDER_BASE_FLOAT16_H_
#define OUTRIDER_BASE_FLOAT16_H_

#include <bit>
#include <cstdint>

namespace outrider {

struct Bf16 {
  std::uint16_t bits = 0;
};
struct F16 {
  std::uint16_t bits = 0;
};

inline float to_float(Bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

inline Bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {  // NaN: keep it NaN, and quiet
    return Bf16{static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
  }
  return Bf16{static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

inline float to_float(F16 value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000u) << 16;
  const std::uint32_t exponent = (value.bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = value.bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24, exact in float
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

inline F16 to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return F16{static_cast<std::uint16_t>(sign | 0x7e00u)};
  if (magnitude >= 0x477ff000u) return F16{static_cast<std::uint16_t>(sign | 0x7c00u)};  // >= 65520
  const auto exponent = static_cast<int>(magnitude >> 23);
  if (exponent < 102) return F16{sign};  // below half of the least subnormal, 2^-25
  if (exponent < 113) {                  // subnormal: shift the full mantissa, round to even
    const std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const int shift = 126 - exponent;
    const std::uint32_t kept = mantissa >> shift;
    const std::uint32_t rest = mantissa & ((1u << shift) - 1u);
    const std::uint32_t half = 1u << (shift - 1);
    const std::uint32_t up = rest > half || (rest == half && (kept & 1u)) ? 1u : 0u;
    return F16{static_cast<std::uint16_t>(sign | (kept + up))};
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return F16{static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13))};
}

}  // namespace outrider

#endif  // OUTRIDER_BASE_FLOAT16_H_
