// SPDX-License-Identifier: Apache-2.0
#include "engine/drafting/pass_times.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

TEST(PassTimes, IsLinearBetweenWhatWasMeasured) {
  const PassTimes times({{1, 10}, {3, 14}, {8, 34}});
  EXPECT_EQ(times.seconds(0), 0);
  EXPECT_EQ(times.seconds(1), 10);
  EXPECT_EQ(times.seconds(2), 12);
  EXPECT_EQ(times.seconds(3), 14);
  EXPECT_EQ(times.seconds(4), 18);
  EXPECT_EQ(times.seconds(8), 34);
  EXPECT_EQ(times.seconds(10), 42);  // extrapolated from the two widest
}

TEST(PassTimes, KnowsNothingAtFirstAndOneCostForAllAfterOne) {
  PassTimes times;
  EXPECT_TRUE(times.empty());
  EXPECT_EQ(times.seconds(5), 0);
  times.add(4, 2);
  EXPECT_EQ(times.seconds(1), 2);
  EXPECT_EQ(times.seconds(100), 2);
}

// If a machine becomes twice as slow, every cost follows, also of other widths.
TEST(PassTimes, FollowsWhatPassesTake) {
  PassTimes times({{1, 1}, {2, 2}, {4, 4}});
  for (int i = 0; i < 40; ++i) times.add(2, 4);
  EXPECT_NEAR(times.seconds(2), 4, 0.05);
  EXPECT_GT(times.seconds(4), 6.5);
  EXPECT_NEAR(times.scale(), 1.8, 0.1);
  for (int i = 0; i < 100; ++i) times.add(4, 4);
  EXPECT_NEAR(times.seconds(4), 4, 0.05);
}

TEST(PassTimes, OneOutlierMovesACostByAThirdOrSo) {
  PassTimes times({{1, 1}, {2, 2}});
  times.add(2, 1000);
  EXPECT_LE(times.seconds(2), 2 * 1.3 * 1.06 + 1e-9);
  EXPECT_GT(times.seconds(2), 2);
  times.add(2, 0);
  times.add(0, 1);
  EXPECT_LE(times.seconds(2), 2 * 1.3 * 1.06 + 1e-9);
}

// Many passes without drafts on a disturbed machine: the ratio of two rows' cost to one row's stays
// known.
TEST(PassTimes, OneWidthAloneSaysNothingOfTheOthers) {
  PassTimes times({{1, 1}, {2, 1.1}, {4, 1.3}});
  for (int i = 0; i < 50; ++i) {
    times.add(1, 1);
    times.add(2, 1.1);
    times.add(4, 1.3);
  }
  for (int i = 0; i < 500; ++i) times.add(1, i % 8 == 7 ? 4 : 1.5);
  EXPECT_GT(times.seconds(1), 1.5);
  EXPECT_NEAR(times.seconds(2) / times.seconds(1), 1.05, 0.05);
  EXPECT_NEAR(times.seconds(4) / times.seconds(1), 1.25, 0.1);
}

// A disturbed pass of one row: more rows do not cost less.
TEST(PassTimes, MoreRowsCostNoLess) {
  PassTimes times({{1, 1}, {2, 1.1}, {8, 3}});
  for (int i = 0; i < 40; ++i) times.add(2, 1.1);
  times.add(1, 10);
  EXPECT_GT(times.seconds(1), 1.2);
  EXPECT_EQ(times.seconds(2), times.seconds(1));
  EXPECT_GT(times.seconds(8), times.seconds(2));
  const PassTimes measured({{1, 2}, {2, 1}});
  EXPECT_EQ(measured.seconds(2), 2);
  EXPECT_EQ(measured.seconds(5), 2);
}

TEST(PassTimes, LearnsAWidthThatWasNotMeasured) {
  PassTimes times({{1, 1}, {8, 8}});
  for (int i = 0; i < 100; ++i) {
    times.add(1, 1);
    times.add(4, 2);
    times.add(8, 8);
  }
  EXPECT_NEAR(times.seconds(4), 2, 0.2);
  EXPECT_NEAR(times.seconds(8), 8, 0.4);
  EXPECT_NEAR(times.seconds(1), 1, 0.05);
}

}  // namespace
}  // namespace outrider
