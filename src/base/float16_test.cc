// SPDX-License-Identifier: Apache-2.0
#include "base/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace outrider {
namespace {

// Every 16-bit pattern survives conversion to float and back, NaN as some NaN.
TEST(Float16, RoundTripsEveryPattern) {
  for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const float half = to_float(F16{bits});
    const float brain = to_float(Bf16{bits});
    if (std::isnan(half)) {
      EXPECT_TRUE(std::isnan(to_float(to_f16(half))));
    } else {
      EXPECT_EQ(to_f16(half).bits, bits);
    }
    if (std::isnan(brain)) {
      EXPECT_TRUE(std::isnan(to_float(to_bf16(brain))));
    } else {
      EXPECT_EQ(to_bf16(brain).bits, bits);
    }
  }
}

// Rounds to the nearer neighbour, and to the even one from the middle. Checks the middle of every
// pair of neighbouring finite f16 values, and one float to each side of it.
TEST(Float16, RoundsToNearestEven) {
  for (std::uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = to_float(F16{bits});
    const float high = to_float(F16{static_cast<std::uint16_t>(bits + 1)});
    const float middle = (low + high) / 2;
    const auto even = static_cast<std::uint16_t>(bits & 1 ? bits + 1 : bits);
    EXPECT_EQ(to_f16(middle).bits, even);
    EXPECT_EQ(to_f16(std::nextafter(middle, 0.0F)).bits, bits);
    EXPECT_EQ(to_f16(std::nextafter(middle, 1e9F)).bits, bits + 1);
  }
  EXPECT_EQ(to_f16(65519.996F).bits, 0x7bff);
  EXPECT_EQ(to_f16(65520.0F).bits, 0x7c00);
  EXPECT_EQ(to_f16(-std::numeric_limits<float>::infinity()).bits, 0xfc00);
  EXPECT_EQ(to_bf16(1.0F + 1.0F / 256).bits, 0x3f80);  // middle, even below
  EXPECT_EQ(to_bf16(1.0F + 3.0F / 256).bits, 0x3f82);  // middle, even above
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()).bits, 0x7f80);
}

}  // namespace
}  // namespace outrider
