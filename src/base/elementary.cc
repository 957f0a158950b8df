// SPDX-License-Identifier: Apache-2.0
// Every function reduces its argument to a small interval around 0, where it sums a Taylor
// polynomial. The coefficients are the doubles nearest to the series' own, so they are easy to
// check. The degree is the smallest for which the first omitted term is below 2^-57 of the result,
// an eighth of the half unit of the last rounding.
#include "base/elementary.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace outrider {
namespace {

// Adding and subtracting 1.5 * 2^52 rounds |x| < 2^51 to the nearest integer (ties to even). The
// sum's low bits hold that integer in two's complement.
constexpr double kRoundingShift = 0x1.8p52;

// log(2) in two parts. The upper one is a multiple of 2^-42, so its product with any integer below
// 2^11 is exact. The lower one is the double nearest to the rest.
constexpr double kLog2Upper = 0x1.62e42fefa3800p-1;
constexpr double kLog2Lower = 0x1.ef35793c76730p-45;

// For -746 <= x <= 710.
inline double exp_in_range(double x) {
  constexpr double kLog2E = 0x1.71547652b82fep+0;
  // x = k log 2 + r, |r| <= log(2) / 2. The upper difference is exact; `tail` is the rounding error
  // of r.
  const double shifted = x * kLog2E + kRoundingShift;
  const double k = shifted - kRoundingShift;
  const double upper = x - k * kLog2Upper;
  const double lower = k * kLog2Lower;
  const double r = upper - lower;
  const double tail = (upper - r) - lower;
  // e^r = 1 + r + r^2 (1/2! + r/3! + ... + r^11/13!); the next term is below 0.35^14/14! = 2^-57.7.
  // Summed in pairs (Estrin): shorter dependency chains than Horner's, with the same error for this
  // size of r.
  const double r2 = r * r;
  const double r4 = r2 * r2;
  const double c01 = 0x1.0000000000000p-1 + r * 0x1.5555555555555p-3;
  const double c23 = 0x1.5555555555555p-5 + r * 0x1.1111111111111p-7;
  const double c45 = 0x1.6c16c16c16c17p-10 + r * 0x1.a01a01a01a01ap-13;
  const double c67 = 0x1.a01a01a01a01ap-16 + r * 0x1.71de3a556c734p-19;
  const double c89 = 0x1.27e4fb7789f5cp-22 + r * 0x1.ae64567f544e4p-26;
  const double c1011 = 0x1.1eed8eff8d898p-29 + r * 0x1.6124613a86d09p-33;
  const double c0_3 = c01 + r2 * c23;
  const double c4_7 = c45 + r2 * c67;
  const double c8_11 = c89 + r2 * c1011;
  const double series = c0_3 + r4 * (c4_7 + r4 * c8_11);
  const double mantissa = 1.0 + (r + (tail + r2 * series));
  // Times 2^k in two steps, since k is from -1076 to 1024 and no double holds all these powers. The
  // biases keep the shifted integers positive: k + 2048 can be halved without a sign.
  const std::uint64_t biased =
      std::bit_cast<std::uint64_t>(shifted) - std::bit_cast<std::uint64_t>(kRoundingShift) + 2048;
  const std::uint64_t half = biased >> 1;
  const std::uint64_t rest = biased - half;
  const double scale = std::bit_cast<double>((half - 1) << 52);  // half - 1024 + 1023
  const double scale_rest = std::bit_cast<double>((rest - 1) << 52);
  return mantissa * scale * scale_rest;
}

// Outside of [-746, 710] the result is 0 or infinity anyway. NaN passes both comparisons.
double clamped(double x) {
  const double above = x < -746.0 ? -746.0 : x;
  return above > 710.0 ? 710.0 : above;
}

}  // namespace

double portable_exp(double x) { return exp_in_range(clamped(x)); }

namespace {

// log(x 2^exponent) for a normal x > 0.
inline double log_of_normal(double x, double exponent) {
  // x = 2^e m, sqrt(1/2) <= m < sqrt(2): adding the bits of 1 minus those of sqrt(1/2) carries into
  // the exponent exactly when the fraction reaches sqrt(2).
  constexpr std::uint64_t kSqrtHalfBits = 0x3fe6a09e667f3bcdu;
  constexpr std::uint64_t kOneBits = 0x3ff0000000000000u;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x) + (kOneBits - kSqrtHalfBits);
  // e + 1023 as a double: 2^52 with that number in its lowest bits, minus 2^52.
  const double biased =
      std::bit_cast<double>((bits >> 52) | std::bit_cast<std::uint64_t>(0x1p52)) - 0x1p52;
  const double m = std::bit_cast<double>((bits & 0x000fffffffffffffu) + kSqrtHalfBits);
  exponent += biased - 1023;
  // log(1 + f) = 2 atanh(s) with s = f / (2 + f), |s| <= 0.1716; f itself is exact.
  // 2 atanh(s) = 2s + s R with R = 2z/3 + 2z^2/5 + ... + 2z^10/21, z = s^2; the next term is below
  // 2^-60 of 2s. Since 2s = f - s f and f - s f + s R = f - (f^2/2 - s (f^2/2 + R)), the large
  // part f carries no rounding error of s.
  const double f = m - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double series = 0x1.8618618618618p-4;
  series = series * z + 0x1.af286bca1af28p-4;
  series = series * z + 0x1.e1e1e1e1e1e1ep-4;
  series = series * z + 0x1.1111111111111p-3;
  series = series * z + 0x1.3b13b13b13b14p-3;
  series = series * z + 0x1.745d1745d1746p-3;
  series = series * z + 0x1.c71c71c71c71cp-3;
  series = series * z + 0x1.2492492492492p-2;
  series = series * z + 0x1.999999999999ap-2;
  series = series * z + 0x1.5555555555555p-1;
  const double remainder = series * z;
  const double half_square = 0.5 * f * f;
  const double correction = s * (half_square + remainder) + exponent * kLog2Lower;
  return exponent * kLog2Upper - ((half_square - correction) - f);
}

}  // namespace

double portable_log(double x) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!(x > 0)) return x == 0 ? -kInfinity : std::numeric_limits<double>::quiet_NaN();
  if (x == kInfinity) return x;
  if (x >= std::numeric_limits<double>::min()) return log_of_normal(x, 0);
  return log_of_normal(x * 0x1p54, -54);  // subnormal: scales it up first
}

double portable_softplus(double x) { return x > 20 ? x : portable_log(1 + portable_exp(x)); }

SineCosine portable_sincos(double x) {
  if (!(std::abs(x) <= 0x1p25)) {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    return {kNan, kNan};
  }
  // x = n pi/2 + (r + tail), with |r| slightly above pi/4 at most. pi/2 as three doubles is
  // accurate to 2^-161. A double below 2^25 comes no closer to a multiple of pi/2 than about 2^-60,
  // so even there the tail is accurate. x - n * first is a multiple of 2^-53 below 1: its fused
  // result is exact.
  constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
  constexpr double kFirst = 0x1.921fb54442d18p+0;
  constexpr double kSecond = 0x1.1a62633145c07p-54;
  constexpr double kThird = -0x1.f1976b7ed8fbcp-110;
  const double shifted = x * kTwoOverPi + kRoundingShift;
  const double n = shifted - kRoundingShift;
  const auto quadrant = static_cast<unsigned>(std::bit_cast<std::uint64_t>(shifted) & 3u);
  const double a = std::fma(-n, kFirst, x);
  const double b = -n * kSecond;
  const double b_error = std::fma(-n, kSecond, -b);
  const double sum = a + b;  // two-sum: sum + sum_error = a + b exactly
  const double back = sum - a;
  const double sum_error = (a - (sum - back)) + (b - back);
  const double rest = sum_error + (b_error - n * kThird);
  const double r = sum + rest;
  const double tail = rest - (r - sum);

  // sin r = r - r^3/3! + ... + r^17/17!, the next term below 2^-63 of r;
  // cos r = 1 - r^2/2! + ... + r^16/16!, the next term below 2^-58.
  // The tail enters by the derivative: sin(r + t) = sin r + t cos r, cos(r + t) = cos r - t sin r.
  const double z = r * r;
  double odd = 0x1.952c77030ad4ap-49;
  odd = odd * z - 0x1.ae7f3e733b81fp-41;
  odd = odd * z + 0x1.6124613a86d09p-33;
  odd = odd * z - 0x1.ae64567f544e4p-26;
  odd = odd * z + 0x1.71de3a556c734p-19;
  odd = odd * z - 0x1.a01a01a01a01ap-13;
  odd = odd * z + 0x1.1111111111111p-7;
  odd = odd * z - 0x1.5555555555555p-3;
  const double half = 0.5 * z;
  const double sine = r + (r * z * odd + tail * (1.0 - half));
  double even = 0x1.ae7f3e733b81fp-45;
  even = even * z - 0x1.93974a8c07c9dp-37;
  even = even * z + 0x1.1eed8eff8d898p-29;
  even = even * z - 0x1.27e4fb7789f5cp-22;
  even = even * z + 0x1.a01a01a01a01ap-16;
  even = even * z - 0x1.6c16c16c16c17p-10;
  even = even * z + 0x1.5555555555555p-5;
  const double most = 1.0 - half;  // the next line adds its rounding error back
  const double cosine = most + (((1.0 - most) - half) + (z * z * even - r * tail));

  switch (quadrant) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

}  // namespace outrider
