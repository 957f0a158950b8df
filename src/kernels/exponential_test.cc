// SPDX-License-Identifier: Apache-2.0
// The exponential and the hyperbolic tangent on the scalar vector. Since silu, attention and caps
// are equal across tables, the result holds for all of them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/algorithms.h"
#include "kernels/vectors/vector_scalar.h"
#include "tests/support/near.h"

namespace outrider::kernels {
namespace {

float exponential_of(float x) { return exponential(Vector::broadcast(x)).lane[0]; }

// use(x, y) for every 61st float from 0 down to one end and up to the other, y = of(x).
template <typename Of, typename Use>
void for_floats(float lowest, float highest, const Of& of, const Use& use) {
  constexpr std::uint32_t kStep = 61;
  for (const float end : {lowest, highest}) {
    const auto last = __builtin_bit_cast(std::uint32_t, end);
    const std::uint32_t sign = last & 0x80000000U;
    for (std::uint32_t bits = sign; bits < last; bits += kStep * kLanes) {
      Vector x;
      for (std::uint32_t i = 0; i < kLanes; ++i) {
        x.lane[i] = __builtin_bit_cast(float, bits + i * kStep);
      }
      const Vector y = of(x);
      for (int i = 0; i < kLanes; ++i) use(x.lane[i], y.lane[i]);
    }
  }
}

// The largest error in units in the last place, and its argument.
struct Worst {
  double ulps = 0;
  float at = 0;
  void see(float x, float y, double expected) {
    const double distance = test::ulps_between(y, expected);
    ASSERT_TRUE(std::isfinite(distance)) << x;
    if (distance <= ulps) return;
    ulps = distance;
    at = x;
  }
};

// Some 35 million floats, including subnormal results, against double std::exp.
TEST(Exponential, IsWithinOneUlpEverywhere) {
  Worst worst;
  for_floats(
      -110.0F, 95.0F, [](Vector x) { return exponential(x); },
      [&worst](float x, float y) {
        const double expected = std::exp(static_cast<double>(x));
        if (expected >= 0x1.ffffffp127) {  // nearer to 2^128 than to the largest float
          ASSERT_EQ(y, std::numeric_limits<float>::infinity()) << x;
          return;
        }
        worst.see(x, y, expected);
      });
  RecordProperty("worst_ulp", std::to_string(worst.ulps));
  EXPECT_GT(worst.ulps, 0.0);
  EXPECT_LT(worst.ulps, 1.0) << "at " << worst.at;
}

TEST(Exponential, HasExactEnds) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(exponential_of(0.0F), 1.0F);
  EXPECT_EQ(exponential_of(-0.0F), 1.0F);
  EXPECT_EQ(exponential_of(-infinity), 0.0F);
  EXPECT_FALSE(std::signbit(exponential_of(-infinity)));
  EXPECT_EQ(exponential_of(infinity), infinity);
  EXPECT_EQ(exponential_of(std::numeric_limits<float>::max()), infinity);
  EXPECT_EQ(exponential_of(std::numeric_limits<float>::lowest()), 0.0F);
  EXPECT_EQ(exponential_of(-103.5F), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(exponential_of(-104.0F), 0.0F);
  EXPECT_TRUE(std::isnan(exponential_of(std::numeric_limits<float>::quiet_NaN())));
}

// Some 70 million floats against double std::tanh.
TEST(HyperbolicTangent, IsWithinThreeUlpEverywhere) {
  Worst worst;
  for_floats(
      -20.0F, 20.0F, [](Vector x) { return hyperbolic_tangent(x); },
      [&worst](float x, float y) {
        ASSERT_LE(std::fabs(y), 1.0F) << x;
        worst.see(x, y, std::tanh(static_cast<double>(x)));
      });
  RecordProperty("worst_ulp", std::to_string(worst.ulps));
  EXPECT_GT(worst.ulps, 0.0);
  EXPECT_LT(worst.ulps, 3.0) << "at " << worst.at;
}

TEST(HyperbolicTangent, HasExactEnds) {
  const auto tangent = [](float x) { return hyperbolic_tangent(Vector::broadcast(x)).lane[0]; };
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(tangent(0.0F), 0.0F);
  EXPECT_TRUE(std::signbit(tangent(-0.0F)));
  EXPECT_EQ(tangent(std::numeric_limits<float>::denorm_min()),
            std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(tangent(infinity), 1.0F);
  EXPECT_EQ(tangent(-infinity), -1.0F);
  EXPECT_EQ(tangent(std::numeric_limits<float>::max()), 1.0F);
  EXPECT_EQ(tangent(std::numeric_limits<float>::lowest()), -1.0F);
  EXPECT_TRUE(std::isnan(tangent(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace outrider::kernels
