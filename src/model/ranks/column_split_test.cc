// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/column_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace outrider {
namespace {

using ::testing::ElementsAre;

TEST(ColumnSplit, BordersAreMultiplesOf32WhereThereAreEnough) {
  EXPECT_THAT(split_columns(256, 3), ElementsAre(64, 96, 96));
  EXPECT_THAT(split_columns(1536, 2), ElementsAre(768, 768));
  // The last rank gets the remainder that is no whole unit.
  EXPECT_THAT(split_columns(131, 2), ElementsAre(64, 67));
  EXPECT_THAT(split_columns(151'643, 4), ElementsAre(37'888, 37'920, 37'888, 37'947));
}

TEST(ColumnSplit, FewColumnsGoInSmallerUnits) {
  EXPECT_THAT(split_columns(64, 4), ElementsAre(16, 16, 16, 16));
  EXPECT_THAT(split_columns(72, 4), ElementsAre(16, 16, 16, 24));
  EXPECT_THAT(split_columns(5, 4), ElementsAre(1, 1, 1, 2));
}

TEST(ColumnSplit, EveryRankHasSomeAndAllAreThere) {
  for (int n_ranks = 1; n_ranks <= 7; ++n_ranks) {
    for (int n = n_ranks; n < 300; ++n) {
      for (const std::vector<int>& parts : {split_columns(n, n_ranks), split_evenly(n, n_ranks)}) {
        ASSERT_EQ(parts.size(), static_cast<std::size_t>(n_ranks));
        EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), 0), n);
        for (const int part : parts) EXPECT_GT(part, 0) << n << " over " << n_ranks;
        EXPECT_EQ(part_of(parts, n_ranks - 1).end, n);
      }
    }
  }
}

// SmolLM2 135M has nine query heads and three key heads.
TEST(ColumnSplit, HeadsOfKeysStandWithEveryRankThatReadsThem) {
  const HeadShare first = share_heads(9, 3, {.rank = 0, .n_ranks = 2});
  EXPECT_EQ(first.queries.begin, 0);
  EXPECT_EQ(first.queries.end, 4);
  EXPECT_EQ(first.keys.begin, 0);
  EXPECT_EQ(first.keys.end, 2);  // the fourth query head reads the second key head
  const HeadShare second = share_heads(9, 3, {.rank = 1, .n_ranks = 2});
  EXPECT_EQ(second.queries.begin, 4);
  EXPECT_EQ(second.queries.end, 9);
  EXPECT_EQ(second.keys.begin, 1);  // and so do the next two
  EXPECT_EQ(second.keys.end, 3);
}

// Qwen2.5-Coder 1.5B: twelve query heads, two key heads.
TEST(ColumnSplit, ARankInTheMiddleMayReadPartsOfTwoGroups) {
  const HeadShare middle = share_heads(12, 2, {.rank = 1, .n_ranks = 3});
  EXPECT_EQ(middle.queries.begin, 4);
  EXPECT_EQ(middle.queries.end, 8);
  EXPECT_EQ(middle.keys.begin, 0);
  EXPECT_EQ(middle.keys.end, 2);
}

}  // namespace
}  // namespace outrider
