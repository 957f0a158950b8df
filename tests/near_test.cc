// SPDX-License-Identifier: Apache-2.0
#include "tests/support/near.h"

#include <gtest/gtest.h>

#include <limits>

namespace outrider::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Near, AcceptsUpToTheToleranceAndNoMore) {
  EXPECT_TRUE(near(1.0, 1.0, 0.0));
  EXPECT_TRUE(near(1.0, 1.5, 0.5));
  EXPECT_TRUE(near(-1.0, -1.5, 0.5));
  EXPECT_FALSE(near(1.0, 1.5, 0.4999));
  EXPECT_FALSE(near(-1.5, -1.0, 0.4999));
}

TEST(Near, FailsClosed) {
  EXPECT_FALSE(near(kNan, kNan, 1.0));
  EXPECT_FALSE(near(kNan, 0.0, kInfinity));
  EXPECT_FALSE(near(0.0, kNan, 1.0));
  EXPECT_FALSE(near(0.0, 0.0, kNan));
  EXPECT_FALSE(near(0.0, 0.0, -1.0));
  EXPECT_FALSE(near(kInfinity, kInfinity, 1.0));
  EXPECT_FALSE(near(1.0, 2.0, kInfinity));
}

TEST(Near, SeesSigns) {
  EXPECT_FALSE(near(-1.0, 1.0, 1.0));
  EXPECT_FALSE(near(-1.0, -3.0, 1.0));
  EXPECT_FALSE(near(1e-3, -1e-3, 1e-3));
}

TEST(Near, CountsUlps) {
  const float one_up = std::nextafter(1.0F, 2.0F);
  EXPECT_EQ(ulps_between(1.0F, 1.0), 0.0);
  EXPECT_EQ(ulps_between(one_up, 1.0), 1.0);
  EXPECT_EQ(ulps_between(0x1p-149F, 0x1p-148), 1.0);
  EXPECT_EQ(ulps_between(1.0F, 1.0 + 0x1p-24), 0.5);
}

}  // namespace
}  // namespace outrider::test
