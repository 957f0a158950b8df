// SPDX-License-Identifier: Apache-2.0
// Float arithmetic whose bits are the processor's (kernels/vectors/vector_math.h, base/float16.h):
// every operation rounds to nearest once and keeps subnormal numbers. CUDA promises that of the
// intrinsics used here, the latter with -ftz=false (cmake/compile_cubin.cmake). Nothing of CUDA's
// own mathematics beyond them is used.
#ifndef OUTRIDER_DEVICE_CUDA_KERNELS_ARITHMETIC_CUH_
#define OUTRIDER_DEVICE_CUDA_KERNELS_ARITHMETIC_CUH_

#include <cstdint>

#include "device/cuda/kernels/launch.cuh"

namespace outrider::device::cuda {

#ifdef __CUDACC__

OUTRIDER_KERNEL_CODE float float_of(std::uint32_t bits) { return __uint_as_float(bits); }
OUTRIDER_KERNEL_CODE std::uint32_t bits_of(float value) { return __float_as_uint(value); }
OUTRIDER_KERNEL_CODE float product_of(float a, float b) { return __fmul_rn(a, b); }
OUTRIDER_KERNEL_CODE float sum_of(float a, float b) { return __fadd_rn(a, b); }
OUTRIDER_KERNEL_CODE float difference_of(float a, float b) { return __fsub_rn(a, b); }
OUTRIDER_KERNEL_CODE float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
OUTRIDER_KERNEL_CODE float divided(float a, float b) { return __fdiv_rn(a, b); }
OUTRIDER_KERNEL_CODE float root(float a) { return __fsqrt_rn(a); }
OUTRIDER_KERNEL_CODE float float_of_int(int a) { return __int2float_rn(a); }
// To the nearest integer, ties to even; 0 for a NaN.
OUTRIDER_KERNEL_CODE int nearest_int(float a) { return __float2int_rn(a); }
// sum + the four products of signed bytes.
OUTRIDER_KERNEL_CODE int add_dot(std::uint32_t a, std::uint32_t b, int sum) {
  return __dp4a(static_cast<int>(a), static_cast<int>(b), sum);
}

#else

inline float float_of(std::uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
inline std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float product_of(float a, float b) { return a * b; }
inline float sum_of(float a, float b) { return a + b; }
inline float difference_of(float a, float b) { return a - b; }
inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
// What a float divided by zero is, IEEE 754 says, whatever C++ does.
#if defined(__clang__)
__attribute__((no_sanitize("float-divide-by-zero")))
#endif
inline float
divided(float a, float b) {
  return a / b;
}
inline float root(float a) { return __builtin_sqrtf(a); }
inline float float_of_int(int a) { return static_cast<float>(a); }
inline int nearest_int(float a) {
  if (!(a == a)) return 0;
  if (a >= 2147483648.0F) return INT32_MAX;
  if (a < -2147483648.0F) return INT32_MIN;
  return static_cast<int>(__builtin_nearbyintf(a));
}
inline int add_dot(std::uint32_t a, std::uint32_t b, int sum) {
  for (unsigned shift = 0; shift < 32; shift += 8) {
    sum +=
        static_cast<std::int8_t>(a >> shift & 0xffU) * static_cast<std::int8_t>(b >> shift & 0xffU);
  }
  return sum;
}

#endif

inline constexpr std::uint32_t kSignBit = 0x80000000U;
inline constexpr std::uint32_t kInfinity = 0x7f800000U;
inline constexpr std::uint32_t kMinusInfinity = 0xff800000U;
inline constexpr std::uint32_t kNan = 0x7fc00000U;

OUTRIDER_KERNEL_CODE std::uint32_t magnitude_of(std::uint32_t bits) { return bits & ~kSignBit; }
OUTRIDER_KERNEL_CODE bool is_nan(float value) { return magnitude_of(bits_of(value)) > kInfinity; }
// Neither infinite nor NaN.
OUTRIDER_KERNEL_CODE bool is_finite(std::uint32_t bits) { return magnitude_of(bits) < kInfinity; }
OUTRIDER_KERNEL_CODE std::uint32_t min_of(std::uint32_t a, std::uint32_t b) {
  return a < b ? a : b;
}
OUTRIDER_KERNEL_CODE std::uint32_t max_of(std::uint32_t a, std::uint32_t b) {
  return a < b ? b : a;
}
// The larger one as the processor's vectors have it: the second where one is NaN.
OUTRIDER_KERNEL_CODE float larger(float a, float b) { return a > b ? a : b; }

// Over the first 16 lanes of a warp, by the tree of kernels/table.h; lane 0 has it. All lanes of
// the warp must call it.
OUTRIDER_KERNEL_CODE float tree_sum(float of_lane) {
  OUTRIDER_UNROLL
  for (std::uint32_t width = 8; width > 0; width /= 2) {
    of_lane = sum_of(of_lane, from_below(of_lane, width));
  }
  return of_lane;
}
OUTRIDER_KERNEL_CODE float tree_largest(float of_lane) {
  OUTRIDER_UNROLL
  for (std::uint32_t width = 8; width > 0; width /= 2) {
    of_lane = larger(of_lane, from_below(of_lane, width));
  }
  return of_lane;
}

// --- 16-bit floats ---

OUTRIDER_KERNEL_CODE float from_bf16(std::uint32_t bits) { return float_of(bits << 16); }

OUTRIDER_KERNEL_CODE std::uint32_t to_bf16(float value) {
  const std::uint32_t bits = bits_of(value);
  if (magnitude_of(bits) > kInfinity) return (bits >> 16) | 0x40U;
  return (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
}

OUTRIDER_KERNEL_CODE float from_f16(std::uint32_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t exponent = bits >> 10 & 0x1fU;
  const std::uint32_t mantissa = bits & 0x3ffU;
  if (exponent == 0) {  // mantissa * 2^-24, exact
    const float small = product_of(float_of_int(static_cast<int>(mantissa)), 0x1p-24F);
    return float_of(sign | bits_of(small));
  }
  const std::uint32_t wide = exponent == 0x1fU ? 0xffU : exponent + 112U;
  return float_of(sign | wide << 23 | mantissa << 13);
}

OUTRIDER_KERNEL_CODE std::uint32_t to_f16(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t magnitude = magnitude_of(bits);
  if (magnitude > kInfinity) return sign | 0x7e00U;
  if (magnitude >= 0x477ff000U) return sign | 0x7c00U;  // from 65520 on
  const std::uint32_t exponent = magnitude >> 23;
  if (exponent < 102) return sign;  // below half of the least one, 2^-25
  if (exponent < 113) {
    const std::uint32_t mantissa = (magnitude & 0x7fffffU) | 0x800000U;
    const std::uint32_t shift = 126 - exponent;
    const std::uint32_t rest = mantissa & ((1U << shift) - 1U);
    const std::uint32_t middle = 1U << (shift - 1);
    std::uint32_t kept = mantissa >> shift;
    if (rest > middle || (rest == middle && (kept & 1U) != 0)) kept += 1;
    return sign | kept;
  }
  const std::uint32_t rounded = magnitude + 0xfffU + (magnitude >> 13 & 1U);
  return sign | (rounded - 0x38000000U) >> 13;
}

// --- e^x (kernels/vectors/vector_math.h) ---

// To the nearest integer, ties to even, of |x| < 2^22.
OUTRIDER_KERNEL_CODE float round_even(float x) {
  return difference_of(sum_of(x, 12582912.0F), 12582912.0F);
}

OUTRIDER_KERNEL_CODE float power_of_two(float n) {
  return float_of(bits_of(sum_of(n, 12583039.0F)) << 23);
}

// r of x = n ln 2 + r.
OUTRIDER_KERNEL_CODE float rest_of(float x, float n) {
  const float r = fused(n, float_of(0xbf317200U), x);
  return fused(n, float_of(0xb5bfbe8eU), r);
}

// (e^r - 1) / r.
OUTRIDER_KERNEL_CODE float growth_of_rest(float r) {
  float e = float_of(0x39500d01U);         // 1 / 5040
  e = fused(e, r, float_of(0x3ab60b61U));  // 1 / 720
  e = fused(e, r, float_of(0x3c088889U));  // 1 / 120
  e = fused(e, r, float_of(0x3d2aaaabU));  // 1 / 24
  e = fused(e, r, float_of(0x3e2aaaabU));  // 1 / 6
  e = fused(e, r, 0.5F);
  return fused(e, r, 1.0F);
}

// e^x, without the 2^n.
OUTRIDER_KERNEL_CODE float exponential_of_rest(float x, float n) {
  const float r = rest_of(x, n);
  return fused(growth_of_rest(r), r, 1.0F);
}

inline constexpr std::uint32_t kInverseOfLn2 = 0x3fb8aa3bU;

OUTRIDER_KERNEL_CODE float exponential(float x) {
  if (is_nan(x)) return float_of(kNan);
  x = -104.0F > x ? -104.0F : x;
  x = 89.0F < x ? 89.0F : x;
  const float n = round_even(product_of(x, float_of(kInverseOfLn2)));
  const float e = exponential_of_rest(x, n);
  const float first = round_even(product_of(n, 0.5F));
  const float rest = difference_of(n, first);
  return product_of(product_of(e, power_of_two(first)), power_of_two(rest));
}

OUTRIDER_KERNEL_CODE float exponential_of_negative(float x) {
  if (is_nan(x)) return float_of(kNan);
  x = -88.0F > x ? -88.0F : x;
  const float n = round_even(product_of(x, float_of(kInverseOfLn2)));
  return product_of(exponential_of_rest(x, n), power_of_two(n));
}

// cap tanh(x / cap), inverse 1 / cap (kernels/vectors/vector_math.h, SoftCap).
OUTRIDER_KERNEL_CODE float hyperbolic_tangent(float u) {
  if (is_nan(u)) return float_of(kNan);
  float x = product_of(float_of(magnitude_of(bits_of(u))), -2.0F);
  x = -88.0F > x ? -88.0F : x;
  const float n = round_even(product_of(x, float_of(kInverseOfLn2)));
  const float r = rest_of(x, n);
  const float power = power_of_two(n);
  const float e = fused(product_of(growth_of_rest(r), r), power, difference_of(power, 1.0F));
  const float size = divided(difference_of(0.0F, e), sum_of(2.0F, e));
  const float least = difference_of(0.0F, size);
  const float clamped = least > u ? least : u;
  return size < clamped ? size : clamped;
}
OUTRIDER_KERNEL_CODE float capped(float x, float cap, float inverse) {
  return product_of(cap, hyperbolic_tangent(product_of(x, inverse)));
}

}  // namespace outrider::device::cuda

#endif  // OUTRIDER_DEVICE_CUDA_KERNELS_ARITHMETIC_CUH_
