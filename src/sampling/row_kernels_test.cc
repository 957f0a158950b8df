// SPDX-License-Identifier: Apache-2.0
#include "sampling/row_kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "base/elementary.h"

namespace outrider {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Compares `rows` on all values with `one` on each; any NaN equals any other.
void expect_same(const std::vector<double>& values, void (*rows)(std::span<double>),
                 double (*one)(double)) {
  std::vector<double> got = values;
  rows(got);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double want = one(values[i]);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got[i]));
    } else {
      EXPECT_EQ(std::bit_cast<std::uint64_t>(got[i]), std::bit_cast<std::uint64_t>(want));
    }
  }
}

TEST(RowKernels, LogarithmsArePortableLog) {
  std::mt19937_64 engine(7);
  for (const std::size_t n : {0u, 1u, 2u, 3u, 5u, 8u, 17u, 512u, 513u, 4099u}) {
    std::vector<double> numbers(n);
    for (double& number : numbers) number = static_cast<double>(engine() >> 11) * 0x1p-53;
    expect_same(numbers, logarithms, portable_log);
    if (n > 4) {  // in a block of its own, and among others
      numbers[0] = kNan, numbers[1] = -1, numbers[2] = 0, numbers[3] = kInfinity;
      numbers[4] = 5e-324;
    }
    expect_same(numbers, logarithms, portable_log);
  }
}

}  // namespace
}  // namespace outrider
