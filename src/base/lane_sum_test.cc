// SPDX-License-Identifier: Apache-2.0
#include "base/lane_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

namespace outrider {
namespace {

TEST(LaneSum, OneByOneOrAllAtOnceGiveTheSameBits) {
  std::mt19937_64 engine(1);
  std::uniform_real_distribution<double> number(-1, 1);
  for (std::size_t n = 0; n < 60; ++n) {
    std::vector<double> values(n);
    for (double& value : values) value = std::ldexp(number(engine), static_cast<int>(n % 40));
    LaneSum each;
    std::size_t n_asked = 0;
    each.add_each(n, [&](std::size_t i) {
      EXPECT_EQ(i, n_asked++);
      return values[i];
    });
    EXPECT_EQ(n_asked, n);
    LaneSum single;
    LaneSum with_zeros;
    LaneSum skipping;
    for (std::size_t i = 0; i < n; ++i) {
      single.add(i, values[i]);
      with_zeros.add(i, i % 3 == 0 ? 0.0 : values[i]);
      if (i % 3 != 0) skipping.add(i, values[i]);
    }
    EXPECT_EQ(each.total(), single.total());
    EXPECT_EQ(with_zeros.total(), skipping.total());
    double plain = 0;
    double size = 0;
    for (const double value : values) {
      plain += value;
      size += std::abs(value);
    }
    // In both ways every addition errs by at most 2^-53 of the sum so far.
    EXPECT_NEAR(each.total(), plain, 2 * static_cast<double>(n) * 0x1p-53 * size);
  }
}

// The order within a lane matters: 1 is lost beside 2^53 only if it is added to it.
TEST(LaneSum, NumbersMeetInTheirLaneFirst) {
  LaneSum apart;
  apart.add(0, 0x1p53);
  apart.add(1, 1);
  apart.add(5, 1);
  EXPECT_EQ(apart.total(), 0x1p53 + 2);
  LaneSum together;
  together.add(0, 0x1p53);
  together.add(8, 1);
  together.add(16, 1);
  EXPECT_EQ(together.total(), 0x1p53);
}

}  // namespace
}  // namespace outrider
