// SPDX-License-Identifier: Apache-2.0
// Softmax weights and log x in double over as many lanes as the instruction set has: portable_exp
// and portable_log of base/elementary.h, operation for operation, so that the bits are the same
// (double_functions_test.cc compares them). base/elementary.cc explains the steps. Written in GCC's
// and Clang's vector notation, which each file's flags turn into its instructions.
#ifndef OUTRIDER_KERNELS_DOUBLE_FUNCTIONS_H_
#define OUTRIDER_KERNELS_DOUBLE_FUNCTIONS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/table.h"

namespace outrider::kernels {
namespace {

template <int kLanesOfDoubles>
struct Doubles {
  static constexpr int kLanes = kLanesOfDoubles;
  // Not `using`: GCC 12 ignores there an attribute that depends on a parameter.
  typedef double Value __attribute__((vector_size(8 * kLanesOfDoubles)));           // NOLINT
  typedef std::uint64_t Bits __attribute__((vector_size(8 * kLanesOfDoubles)));     // NOLINT
  typedef float Floats __attribute__((vector_size(4 * kLanesOfDoubles)));           // NOLINT
  typedef std::int32_t Integers __attribute__((vector_size(4 * kLanesOfDoubles)));  // NOLINT
  typedef std::uint16_t Halves __attribute__((vector_size(2 * kLanesOfDoubles)));   // NOLINT
  static_assert(sizeof(Value) == 8 * kLanesOfDoubles && sizeof(Bits) == sizeof(Value));
};

constexpr double kLog2Upper = 0x1.62e42fefa3800p-1;
constexpr double kLog2Lower = 0x1.ef35793c76730p-45;

// For x <= 0 or NaN.
template <class D>
typename D::Value exponential_of_doubles(typename D::Value x) {
  using Value = typename D::Value;
  using Bits = typename D::Bits;
  constexpr double kShift = 0x1.8p52;
  constexpr std::uint64_t kShiftBits = 0x4338000000000000u;
  x = x < -746.0 ? Value{} - 746.0 : x;  // NaN passes
  const Value shifted = x * 0x1.71547652b82fep+0 + kShift;
  const Value k = shifted - kShift;
  const Value upper = x - k * kLog2Upper;
  const Value lower = k * kLog2Lower;
  const Value r = upper - lower;
  const Value tail = (upper - r) - lower;
  const Value r2 = r * r;
  const Value r4 = r2 * r2;
  const Value c01 = 0x1.0000000000000p-1 + r * 0x1.5555555555555p-3;
  const Value c23 = 0x1.5555555555555p-5 + r * 0x1.1111111111111p-7;
  const Value c45 = 0x1.6c16c16c16c17p-10 + r * 0x1.a01a01a01a01ap-13;
  const Value c67 = 0x1.a01a01a01a01ap-16 + r * 0x1.71de3a556c734p-19;
  const Value c89 = 0x1.27e4fb7789f5cp-22 + r * 0x1.ae64567f544e4p-26;
  const Value c1011 = 0x1.1eed8eff8d898p-29 + r * 0x1.6124613a86d09p-33;
  const Value c0_3 = c01 + r2 * c23;
  const Value c4_7 = c45 + r2 * c67;
  const Value c8_11 = c89 + r2 * c1011;
  const Value series = c0_3 + r4 * (c4_7 + r4 * c8_11);
  const Value mantissa = 1.0 + (r + (tail + r2 * series));
  const Bits biased = __builtin_bit_cast(Bits, shifted) - kShiftBits + 2048;
  const Bits half = biased >> 1;
  const Bits rest = biased - half;
  return mantissa * __builtin_bit_cast(Value, (half - 1) << 52) *
         __builtin_bit_cast(Value, (rest - 1) << 52);
}

// For normal x > 0.
template <class D>
typename D::Value logarithm_of_doubles(typename D::Value x) {
  using Value = typename D::Value;
  using Bits = typename D::Bits;
  constexpr std::uint64_t kSqrtHalfBits = 0x3fe6a09e667f3bcdu;
  constexpr std::uint64_t kOneBits = 0x3ff0000000000000u;
  constexpr std::uint64_t kTwo52Bits = 0x4330000000000000u;
  const Bits bits = __builtin_bit_cast(Bits, x) + (kOneBits - kSqrtHalfBits);
  const Value exponent = (__builtin_bit_cast(Value, (bits >> 52) | kTwo52Bits) - 0x1p52) - 1023.0;
  const Value m = __builtin_bit_cast(Value, (bits & 0x000fffffffffffffu) + kSqrtHalfBits);
  const Value f = m - 1.0;
  const Value s = f / (2.0 + f);
  const Value z = s * s;
  Value series = Value{} + 0x1.8618618618618p-4;
  series = series * z + 0x1.af286bca1af28p-4;
  series = series * z + 0x1.e1e1e1e1e1e1ep-4;
  series = series * z + 0x1.1111111111111p-3;
  series = series * z + 0x1.3b13b13b13b14p-3;
  series = series * z + 0x1.745d1745d1746p-3;
  series = series * z + 0x1.c71c71c71c71cp-3;
  series = series * z + 0x1.2492492492492p-2;
  series = series * z + 0x1.999999999999ap-2;
  series = series * z + 0x1.5555555555555p-1;
  const Value remainder = series * z;
  const Value half_square = 0.5 * f * f;
  const Value correction = s * (half_square + remainder) + exponent * kLog2Lower;
  return exponent * kLog2Upper - ((half_square - correction) - f);
}

// Computes a vector of weights from one of logits, and its buckets if requested; counts zero
// weights in n_weightless, lane by lane.
template <class D>
void weigh_logits(const SoftmaxArgs& args, const float* logits, double* weights,
                  std::uint16_t* buckets, typename D::Bits& n_weightless) {
  using Value = typename D::Value;
  typename D::Floats narrow;
  __builtin_memcpy(&narrow, logits, sizeof narrow);
  Value x = __builtin_convertvector(narrow, Value) - static_cast<double>(args.largest);
  if (args.temperature != 1) x = x / args.temperature;
  if (buckets != nullptr) {
    const Value last = Value{} + static_cast<double>(args.last_bucket);
    Value bucket = x * -args.buckets_per_unit;
    bucket = bucket < last ? bucket : last;  // false for NaN
    const auto words = __builtin_convertvector(bucket, typename D::Integers);
    const auto halves = __builtin_convertvector(words, typename D::Halves);
    __builtin_memcpy(buckets, &halves, sizeof halves);
  }
  Value weight = exponential_of_doubles<D>(x);
  weight = weight > 0.0 ? weight : Value{};  // false for NaN
  n_weightless += weight > 0.0 ? typename D::Bits{} : typename D::Bits{} + 1;
  __builtin_memcpy(weights, &weight, sizeof weight);
}

template <int kDoubles>
int softmax_weights(const SoftmaxArgs& args) {
  using D = Doubles<kDoubles>;
  typename D::Bits n_weightless = {};
  int i = 0;
  for (; i + kDoubles <= args.n; i += kDoubles) {
    weigh_logits<D>(args, args.logits + i, args.weights + i,
                    args.buckets == nullptr ? nullptr : args.buckets + i, n_weightless);
  }
  if (i < args.n) {
    // Padding after the last logit is the largest one, which is never weightless.
    float logits[kDoubles];
    double weights[kDoubles];
    std::uint16_t buckets[kDoubles];
    const auto left = static_cast<std::size_t>(args.n - i);
    for (float& logit : logits) logit = args.largest;
    __builtin_memcpy(logits, args.logits + i, left * sizeof(float));
    weigh_logits<D>(args, logits, weights, args.buckets == nullptr ? nullptr : buckets,
                    n_weightless);
    __builtin_memcpy(args.weights + i, weights, left * sizeof(double));
    if (args.buckets != nullptr) __builtin_memcpy(args.buckets + i, buckets, left * 2);
  }
  std::uint64_t total = 0;
  for (int lane = 0; lane < kDoubles; ++lane) total += n_weightless[lane];
  return static_cast<int>(total);
}

template <int kDoubles>
void logarithms(double* values, int n) {
  using D = Doubles<kDoubles>;
  const auto replace = [](double* at, std::size_t n_bytes) {
    typename D::Value x = typename D::Value{} + 1.0;  // padding: log 1
    __builtin_memcpy(&x, at, n_bytes);
    x = logarithm_of_doubles<D>(x);
    __builtin_memcpy(at, &x, n_bytes);
  };
  int i = 0;
  for (; i + kDoubles <= n; i += kDoubles) replace(values + i, sizeof(typename D::Value));
  if (i < n) replace(values + i, static_cast<std::size_t>(n - i) * sizeof(double));
}

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_DOUBLE_FUNCTIONS_H_
