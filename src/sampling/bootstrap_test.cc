// SPDX-License-Identifier: Apache-2.0
#include "sampling/bootstrap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/near.h"

namespace outrider {
namespace {

std::vector<double> mean(std::span<const double> sums) { return {sums[0] / sums[1]}; }

TEST(Bootstrap, OfACoinHasTheWidthOfItsStandardError) {
  // 400 items, half of them right: the mean's standard error is 0.5 / 20 = 0.025, and a 95%
  // interval reaches 1.96 of it either way. Its ends are quantiles of 1000 values. A quantile's
  // standard error is sqrt(0.025 * 0.975 / 1000) / density; the normal density at 1.96 is 0.0584 /
  // 0.025, so it is 0.0021. The tolerance is five of them.
  std::vector<double> counts;
  for (int i = 0; i < 400; ++i) counts.insert(counts.end(), {i % 2 == 0 ? 1.0 : 0.0, 1.0});
  const auto intervals = bootstrap_intervals(counts, 2, mean);
  ASSERT_EQ(intervals.size(), 1U);
  EXPECT_TRUE(test::near(intervals[0].low, 0.5 - 1.96 * 0.025, 0.0105));
  EXPECT_TRUE(test::near(intervals[0].high, 0.5 + 1.96 * 0.025, 0.0105));
}

TEST(Bootstrap, OfOneItemIsItsScore) {
  const std::vector<double> counts = {3, 4};
  const auto intervals = bootstrap_intervals(counts, 2, mean);
  EXPECT_EQ(intervals[0].low, 0.75);
  EXPECT_EQ(intervals[0].high, 0.75);
}

TEST(Bootstrap, LeavesOutWhatIsNoNumberAndGivesNoneForNothing) {
  // Two items, one with denominator 0: resamples of it alone have no score.
  const std::vector<double> counts = {1, 1, 0, 0};
  const auto intervals = bootstrap_intervals(counts, 2, mean);
  EXPECT_EQ(intervals[0].low, 1);
  EXPECT_EQ(intervals[0].high, 1);
  const std::vector<double> nothing = {0, 0};
  EXPECT_TRUE(std::isnan(bootstrap_intervals(nothing, 2, mean)[0].low));
}

TEST(Bootstrap, OfInfinitiesIsInfinite) {
  // A text that a rule cannot emit, in every resample.
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<double> all = {kInfinity, 1, kInfinity, 1};
  const auto intervals = bootstrap_intervals(all, 2, mean);
  EXPECT_EQ(intervals[0].low, kInfinity);
  EXPECT_EQ(intervals[0].high, kInfinity);
  // In some resamples.
  const std::vector<double> some = {kInfinity, 1, 3, 1};
  const auto mixed = bootstrap_intervals(some, 2, mean);
  EXPECT_EQ(mixed[0].low, 3);
  EXPECT_EQ(mixed[0].high, kInfinity);
}

TEST(Bootstrap, IsTheSameForTheSameSeedOnly) {
  std::vector<double> counts;
  for (int i = 0; i < 30; ++i) counts.insert(counts.end(), {std::sqrt(i), 1.0});
  const auto first = bootstrap_intervals(counts, 2, mean);
  const auto again = bootstrap_intervals(counts, 2, mean);
  const auto other = bootstrap_intervals(counts, 2, mean, {.seed = 1});
  EXPECT_EQ(first[0].low, again[0].low);
  EXPECT_EQ(first[0].high, again[0].high);
  EXPECT_NE(first[0].low, other[0].low);
}

}  // namespace
}  // namespace outrider
