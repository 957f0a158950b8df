// SPDX-License-Identifier: Apache-2.0
#include "base/elementary.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

namespace outrider {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The error of `got`, in units in the last place (ulps) of the double nearest to `want`; infinite
// for a NaN. `want` is an x87 long double with a mantissa of 64 bits, accurate to 2^-11 ulps. If
// long double is no wider than double, the bound below covers the error of `want`.
double error_in_ulps(double got, long double want) {
  if (std::isnan(got)) return kInfinity;
  const double nearest = std::abs(static_cast<double>(want));
  const double unit = nearest < std::numeric_limits<double>::min()
                          ? std::numeric_limits<double>::denorm_min()
                          : std::nextafter(nearest, kInfinity) - nearest;
  return static_cast<double>(std::abs(static_cast<long double>(got) - want) /
                             static_cast<long double>(unit));
}

// The bound that base/elementary.h states.
constexpr double kMaxUlps = 2.0;

// The largest error of many results, in ulps, and its argument.
struct Sweep {
  double worst = 0;
  double where = 0;
  void add(double x, double got, long double want) {
    const double error = error_in_ulps(got, want);
    if (!(error <= worst)) {
      worst = error;
      where = x;
    }
  }
};

void report(const char* name, const Sweep& sweep) {
  ::testing::Test::RecordProperty(name, std::to_string(sweep.worst));
  EXPECT_LE(sweep.worst, kMaxUlps) << name << " at " << sweep.where;
}

// error_in_ulps itself must be able to see an error.
TEST(ElementaryComparator, SeesAnErrorOfThreeUnits) {
  EXPECT_GT(error_in_ulps(1.0 + 3 * 0x1p-52, 1.0L), 2.9);
  EXPECT_GT(error_in_ulps(kNan, 1.0L), 1e9);
  EXPECT_GT(error_in_ulps(-1.0, 1.0L), 1e9);
  EXPECT_EQ(error_in_ulps(0.5, 0.5L), 0);
}

TEST(PortableExp, StaysWithinItsBound) {
  Sweep normal, subnormal, near_zero;
  for (int i = 0; i <= 2'000'000; ++i) {
    const double x = -708.3 + i * (709.78 + 708.3) / 2'000'000;
    normal.add(x, portable_exp(x), std::exp(static_cast<long double>(x)));
    const double y = -40.0 + i * 41e-6 / 2;  // -40 to 1; softmax asks for 0 and less
    normal.add(y, portable_exp(y), std::exp(static_cast<long double>(y)));
  }
  for (int i = 0; i <= 100'000; ++i) {
    const double x = -745.1 + i * (745.1 - 708.4) / 100'000;
    subnormal.add(x, portable_exp(x), std::exp(static_cast<long double>(x)));
    const double y = std::ldexp(1.0 + i * 1e-5, -(i % 60));
    near_zero.add(y, portable_exp(y), std::exp(static_cast<long double>(y)));
    near_zero.add(-y, portable_exp(-y), std::exp(static_cast<long double>(-y)));
  }
  report("exp", normal);
  report("exp_subnormal", subnormal);
  report("exp_near_zero", near_zero);
}

TEST(PortableExp, Extremes) {
  EXPECT_EQ(portable_exp(0.0), 1.0);
  EXPECT_EQ(portable_exp(-0.0), 1.0);
  EXPECT_EQ(portable_exp(710.0), kInfinity);
  EXPECT_EQ(portable_exp(709.79), kInfinity);
  EXPECT_LT(portable_exp(709.78), kInfinity);
  EXPECT_EQ(portable_exp(kInfinity), kInfinity);
  EXPECT_EQ(portable_exp(1e300), kInfinity);
  EXPECT_EQ(portable_exp(-746.0), 0.0);
  EXPECT_EQ(portable_exp(-745.2), 0.0);
  EXPECT_GT(portable_exp(-745.1), 0.0);
  EXPECT_EQ(portable_exp(-kInfinity), 0.0);
  EXPECT_TRUE(std::isnan(portable_exp(kNan)));
}

TEST(PortableLog, StaysWithinItsBound) {
  Sweep unit, around_one, everywhere;
  std::mt19937_64 engine(11);
  for (int i = 1; i <= 2'000'000; ++i) {
    const double x = i / 2'000'000.0;
    unit.add(x, portable_log(x), std::log(static_cast<long double>(x)));
    const double y = 0.5 + i * 1e-6;
    around_one.add(y, portable_log(y), std::log(static_cast<long double>(y)));
    // Random bits: every exponent, including subnormals.
    const double z = std::bit_cast<double>((engine() >> 1) % 0x7ff0000000000000u);
    if (z > 0) everywhere.add(z, portable_log(z), std::log(static_cast<long double>(z)));
  }
  for (int shift = 1; shift <= 53; ++shift) {
    for (double x : {1.0 + std::ldexp(1.0, -shift), 1.0 - std::ldexp(1.0, -shift)}) {
      around_one.add(x, portable_log(x), std::log(static_cast<long double>(x)));
    }
  }
  report("log_unit", unit);
  report("log_around_one", around_one);
  report("log_everywhere", everywhere);
}

// The relative error is below 3e-9, finer than a float's 6e-8. Below -16 the sum 1 + e^x keeps
// too few of e^x's digits for that.
TEST(PortableSoftplus, FollowsItsDefinition) {
  for (double x = -16; x < 40; x += 1.0 / 64) {
    const double expected = std::log1p(std::exp(x));
    EXPECT_NEAR(portable_softplus(x), expected, 3e-9 * expected) << x;
  }
  EXPECT_EQ(portable_softplus(-800), 0);
  EXPECT_EQ(portable_softplus(1e9), 1e9);
  EXPECT_TRUE(std::isnan(portable_softplus(kNan)));
}

TEST(PortableLog, Extremes) {
  EXPECT_EQ(portable_log(1.0), 0.0);
  EXPECT_EQ(portable_log(0.0), -kInfinity);
  EXPECT_EQ(portable_log(-0.0), -kInfinity);
  EXPECT_EQ(portable_log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(portable_log(-1.0)));
  EXPECT_TRUE(std::isnan(portable_log(-kInfinity)));
  EXPECT_TRUE(std::isnan(portable_log(kNan)));
  EXPECT_LE(error_in_ulps(portable_log(5e-324), std::log(static_cast<long double>(5e-324))),
            kMaxUlps);
}

TEST(PortableSincos, StaysWithinItsBound) {
  Sweep sine, cosine;
  const auto add = [&](double x) {
    const SineCosine got = portable_sincos(x);
    sine.add(x, got.sine, std::sin(static_cast<long double>(x)));
    cosine.add(x, got.cosine, std::cos(static_cast<long double>(x)));
  };
  std::mt19937_64 engine(13);
  for (int i = 0; i <= 1'000'000; ++i) {
    add(-10.0 + i * 20e-6);
    add((static_cast<double>(engine() >> 11) * 0x1p-53 - 0.5) * 0x1p26);  // the whole range
    add(std::ldexp(1.0 + i * 1e-6, i % 50 - 40));
  }
  // Results near 0: the doubles around multiples of pi/2.
  for (int i = 0; i <= 200'000; ++i) {
    const double n = i < 100'000 ? i : std::floor(21'361'414.0 * (i - 100'000) / 100'000);
    const auto x = static_cast<double>(n * 1.57079632679489661923L);
    if (x >= 0x1p25) continue;
    add(x);
    add(std::nextafter(x, kInfinity));
    add(-x);
  }
  // Angles of rotary embeddings at the frequency 1, in radians.
  for (double position : {1.0, 100.0, 131071.0, 0x1p25}) add(position);
  report("sin", sine);
  report("cos", cosine);
}

TEST(PortableSincos, Extremes) {
  EXPECT_EQ(portable_sincos(0.0).sine, 0.0);
  EXPECT_EQ(portable_sincos(0.0).cosine, 1.0);
  EXPECT_EQ(portable_sincos(5e-324).sine, 5e-324);
  for (double x : {kNan, kInfinity, -kInfinity, 0x1p25 + 1, -1e300}) {
    EXPECT_TRUE(std::isnan(portable_sincos(x).sine)) << x;
    EXPECT_TRUE(std::isnan(portable_sincos(x).cosine)) << x;
  }
}

// Every build must give the same bits: a hash of many results.
TEST(Elementary, BitsAreFixed) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a, 64 bits at a time
  const auto add = [&hash](double value) {
    hash = (hash ^ std::bit_cast<std::uint64_t>(value)) * 0x100000001b3u;
  };
  for (int i = 0; i < 10'000; ++i) {
    const double x = i * 0.0731;
    add(portable_exp(x - 400));
    add(portable_log(x + 1e-3));
    add(portable_sincos(x * x).sine);
    add(portable_sincos(x * x).cosine);
  }
  EXPECT_EQ(hash, 11000069242128265687u);
}

}  // namespace
}  // namespace outrider
