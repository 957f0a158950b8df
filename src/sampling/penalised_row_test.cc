// SPDX-License-Identifier: Apache-2.0
#include "sampling/penalised_row.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace outrider {
namespace {

constexpr int kVocabulary = 200;

std::vector<float> some_logits() {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> logits(kVocabulary);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

struct Penalised {
  Penalised() {
    history.add_prompt(std::vector<TokenId>{3, 9, 3, 150});
    history.add_generated(9);
    history.add_generated(40);
  }
  // 9 has a bias and occurs in the text and on the path; 7 is on the path twice; 199 only has a
  // bias.
  Transform transform{{.repetition_penalty = 1.3,
                       .presence_penalty = 0.4,
                       .frequency_penalty = 0.2,
                       .logit_bias = {{9, 1.5F}, {199, -2.0F}}},
                      kVocabulary};
  TokenHistory history;
  std::vector<TokenId> path = {7, 9, 7, 60};
  std::vector<TokenLogit> replaced;
};

TEST(PenalisedRow, HoldsWhatPenaliseMakesAndThenWhatItDidBefore) {
  Penalised with;
  const std::vector<float> before = some_logits();
  std::vector<float> expected = before;
  with.transform.penalise(expected, with.history, with.path);
  std::vector<float> row = before;
  for (int turn = 0; turn < 2; ++turn) {
    {
      const PenalisedRow penalised(with.transform, LogitRow(row), with.history, with.path,
                                   with.replaced);
      EXPECT_TRUE(same_bits(penalised.row().values(), expected));
      EXPECT_FALSE(same_bits(row, before));
    }
    EXPECT_TRUE(same_bits(row, before));
  }
}

TEST(PenalisedRow, PutsBackWhatIsNoNumberOrHasASign) {
  Penalised with;
  std::vector<float> row = some_logits();
  row[3] = std::numeric_limits<float>::quiet_NaN();
  row[9] = -0.0F;
  row[7] = -std::numeric_limits<float>::infinity();
  const std::vector<float> before = row;
  {
    const PenalisedRow penalised(with.transform, LogitRow(row), with.history, with.path,
                                 with.replaced);
  }
  EXPECT_TRUE(same_bits(row, before));
}

// A drafter's row may have fewer tokens than the text uses.
TEST(PenalisedRow, LeavesWhatIsBehindAShorterRowAlone) {
  Penalised with;
  const std::vector<float> before = some_logits();
  std::vector<float> row = before;
  const PenalisedRow penalised(with.transform, LogitRow(row).first(50), with.history, with.path,
                               with.replaced);
  EXPECT_EQ(penalised.row().size(), 50U);
  EXPECT_TRUE(same_bits(std::span(row).subspan(50), std::span(before).subspan(50)));
  EXPECT_NE(row[9], before[9]);
}

TEST(PenalisedRow, WritesNothingWithoutPenalties) {
  Penalised with;
  std::vector<float> row = some_logits();
  const std::vector<float> before = row;
  const Transform plain({.temperature = 0.7}, kVocabulary);
  const PenalisedRow penalised(plain, LogitRow(row), with.history, with.path, with.replaced);
  EXPECT_TRUE(same_bits(penalised.row().values(), before));
  EXPECT_TRUE(with.replaced.empty());
}

TEST(PenalisedRow, AGreedyDistributionIsTheLikeliestPenalisedToken) {
  Penalised with;
  std::vector<float> row = some_logits();
  row[7] = 5;  // the likeliest until it is penalised
  row[61] = 4.9F;
  const Transform greedy({.temperature = 0, .presence_penalty = 1}, kVocabulary);
  Distribution dist;
  {
    const PenalisedRow penalised(greedy, LogitRow(row), with.history, with.path, with.replaced);
    greedy.distribution(penalised.row(), dist);
  }
  EXPECT_EQ(dist.ids, std::vector<TokenId>{61});
  EXPECT_EQ(likeliest_token(LogitRow(row)), 7);
}

}  // namespace
}  // namespace outrider
