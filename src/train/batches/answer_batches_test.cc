// SPDX-License-Identifier: Apache-2.0
#include "train/batches/answer_batches.h"

#include <gtest/gtest.h>

#include <vector>

namespace outrider::train {
namespace {

TEST(AnswerBatches, ShortTextsStandInSixtyFours) {
  const std::vector<std::size_t> lengths(100, 96);
  EXPECT_EQ(n_answered_together(lengths, 4), 64u);
  EXPECT_EQ(n_answered_together(std::span(lengths).last(36), 4), 36u);
}

// Before batches were limited, one text of 4,096 tokens padded 63 others to its width: 17 GB per
// layer.
TEST(AnswerBatches, ALongTextStandsAlone) {
  std::vector<std::size_t> lengths(63, 20);
  lengths.push_back(4096);
  EXPECT_EQ(n_answered_together(lengths, 4), 63u);
  EXPECT_EQ(n_answered_together(std::span(lengths).last(1), 4), 1u);
  // 2^26 scores are 16 texts of 1,024 tokens with four heads.
  EXPECT_EQ(n_answered_together(std::vector<std::size_t>(64, 1024), 4), 16u);
  EXPECT_EQ(n_answered_together(std::vector<std::size_t>(64, 1025), 4), 15u);
  EXPECT_EQ(n_answered_together(std::vector<std::size_t>(64, 1024), 8), 8u);
}

TEST(AnswerBatches, TheLongestTextsScoresFit) {
  EXPECT_EQ(longest_answered(1), 8192u);
  EXPECT_EQ(longest_answered(4), 4096u);
  EXPECT_EQ(longest_answered(6), 3344u);  // the square root of 11,184,810.67
  for (const std::size_t n_heads : {1u, 3u, 12u, 64u}) {
    const std::size_t longest = longest_answered(static_cast<int>(n_heads));
    EXPECT_LE(n_heads * longest * longest, std::size_t{1} << 26);
    EXPECT_GT(n_heads * (longest + 1) * (longest + 1), std::size_t{1} << 26);
  }
}

}  // namespace
}  // namespace outrider::train
