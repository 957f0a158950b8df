// SPDX-License-Identifier: Apache-2.0
#include "eval/frontiers/expected_passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace outrider::eval {
namespace {

// By enumerating every outcome: the round that begins at `i`, and later ones.
double by_recursion(const std::vector<double>& acceptance, std::size_t i, int length) {
  const std::size_t n = acceptance.size();
  if (i >= n) return 0;
  const std::size_t draft = std::min(static_cast<std::size_t>(length), n - 1 - i);
  double passes = 1;
  double stands = 1;
  for (std::size_t m = 0; m < draft; ++m) {
    passes += stands * (1 - acceptance[i + m]) * by_recursion(acceptance, i + m + 1, length);
    stands *= acceptance[i + m];
  }
  return passes + stands * by_recursion(acceptance, i + draft + 1, length);
}

TEST(ExpectedPasses, KnownEnds) {
  const std::vector<double> always(12, 1.0);
  const std::vector<double> never(12, 0.0);
  EXPECT_EQ(expected_passes(always, 3), 3);
  EXPECT_EQ(expected_passes(always, 100), 1);
  EXPECT_EQ(expected_passes(never, 5), 12);
  EXPECT_EQ(expected_passes({}, 5), 0);
  EXPECT_EQ(expected_passes(std::array{0.5}, 5), 1);
  // Two tokens: the first drafted one is accepted or not; either way the second needs a pass only
  // if it is rejected.
  EXPECT_DOUBLE_EQ(expected_passes(std::array{0.25, 0.9}, 1), 1 * 0.25 + 2 * 0.75);
}

TEST(ExpectedPasses, EqualsTheWalkThroughAllOutcomes) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int length = 1; length <= 4; ++length) {
    std::vector<double> acceptance(11);
    for (double& chance : acceptance) chance = uniform(random);
    EXPECT_NEAR(expected_passes(acceptance, length), by_recursion(acceptance, 0, length), 1e-12);
  }
}

// The same mean acceptance in another order needs a different number of passes.
TEST(ExpectedPasses, SeesTheOrderOfPositions) {
  const std::vector<double> together = {1, 1, 1, 1, 0, 0, 0, 0};
  const std::vector<double> mixed = {1, 0, 1, 0, 1, 0, 1, 0};
  EXPECT_EQ(expected_passes(together, 1), 2 + 4);
  EXPECT_EQ(expected_passes(mixed, 1), 4);
  EXPECT_EQ(expected_passes(together, 2), 2 + 3);
  EXPECT_EQ(expected_passes(mixed, 2), 4);
}

}  // namespace
}  // namespace outrider::eval
