// The exponential and the hyperbolic tangent, once, on the scalar vector: equality of silu,
// attention and caps across tables carries what is shown here over to all of them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/algorithms.h"
#include "kernels/vector_scalar.h"
#include "tests/support/near.h"

namespace outrider::kernels {
namespace {

float exponential_of(float x) { return exponential(Vector::broadcast(x)).lane[0]; }

// Over every 61st float from -110 to 95 (some 35 million): the distance from double std::exp in
// units of the last place, subnormal results included.
TEST(Exponential, IsWithinOneUlpEverywhere) {
  constexpr std::uint32_t kStep = 61;
  double worst = 0;
  float worst_at = 0;
  for (const float end : {-110.0F, 95.0F}) {
    const auto last = __builtin_bit_cast(std::uint32_t, end);
    const std::uint32_t sign = last & 0x80000000U;
    for (std::uint32_t bits = sign; bits < last; bits += kStep * kLanes) {
      Vector x;
      for (std::uint32_t i = 0; i < kLanes; ++i) {
        x.lane[i] = __builtin_bit_cast(float, bits + i * kStep);
      }
      const Vector y = exponential(x);
      for (int i = 0; i < kLanes; ++i) {
        const double expected = std::exp(static_cast<double>(x.lane[i]));
        if (expected >= 0x1.ffffffp127) {  // nearer to 2^128 than to the largest float
          ASSERT_EQ(y.lane[i], std::numeric_limits<float>::infinity()) << x.lane[i];
          continue;
        }
        const double distance = test_support::ulps_between(y.lane[i], expected);
        ASSERT_TRUE(std::isfinite(distance)) << x.lane[i];
        if (distance > worst) {
          worst = distance;
          worst_at = x.lane[i];
        }
      }
    }
  }
  RecordProperty("worst_ulp", std::to_string(worst));
  EXPECT_LT(worst, 1.0) << "at " << worst_at;
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

// Over every 61st float from -20 to 20 (some 70 million).
TEST(HyperbolicTangent, IsWithinThreeUlpEverywhere) {
  constexpr std::uint32_t kStep = 61;
  double worst = 0;
  float worst_at = 0;
  for (const float end : {-20.0F, 20.0F}) {
    const auto last = __builtin_bit_cast(std::uint32_t, end);
    const std::uint32_t sign = last & 0x80000000U;
    for (std::uint32_t bits = sign; bits < last; bits += kStep * kLanes) {
      Vector x;
      for (std::uint32_t i = 0; i < kLanes; ++i) {
        x.lane[i] = __builtin_bit_cast(float, bits + i * kStep);
      }
      const Vector y = hyperbolic_tangent(x);
      for (int i = 0; i < kLanes; ++i) {
        const double expected = std::tanh(static_cast<double>(x.lane[i]));
        const double distance = test_support::ulps_between(y.lane[i], expected);
        ASSERT_TRUE(std::isfinite(distance)) << x.lane[i];
        ASSERT_LE(std::fabs(y.lane[i]), 1.0F) << x.lane[i];
        if (distance > worst) {
          worst = distance;
          worst_at = x.lane[i];
        }
      }
    }
  }
  RecordProperty("worst_ulp", std::to_string(worst));
  EXPECT_LT(worst, 3.0) << "at " << worst_at;
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
