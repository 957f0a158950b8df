// SPDX-License-Identifier: Apache-2.0
#include "sampling/log_probs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace outrider {
namespace {

TEST(LogProbs, AreTheLogSoftmaxOfTheRow) {
  std::vector<float> logits = {1.5F, -2.0F, 3.25F, 0.0F, 3.25F, -7.0F};
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  double of = 0;
  std::vector<TokenLogProb> top;
  log_probs(LogitRow(logits), 3, 3, of, top);
  EXPECT_NEAR(of, -std::log(sum), 1e-12);
  ASSERT_EQ(top.size(), 3u);
  EXPECT_EQ(top[0].id, 2);
  EXPECT_EQ(top[1].id, 4);
  EXPECT_EQ(top[2].id, 0);
  EXPECT_NEAR(top[2].log_prob, 1.5 - std::log(sum), 1e-12);
  log_probs(LogitRow(logits), 5, 0, of, top);
  EXPECT_NEAR(of, -7.0 - std::log(sum), 1e-12);
  EXPECT_TRUE(top.empty());
}

TEST(LogProbs, TokensThatCannotBeHaveMinusInfinity) {
  const float none = -std::numeric_limits<float>::infinity();
  std::vector<float> logits = {none, 1.0F, none};
  double of = 0;
  std::vector<TokenLogProb> top;
  log_probs(LogitRow(logits), 0, 2, of, top);
  EXPECT_EQ(of, -std::numeric_limits<double>::infinity());
  ASSERT_EQ(top.size(), 1u);  // the others have no probability
  EXPECT_EQ(top[0].log_prob, 0.0);
  std::vector<float> nothing = {none, none};
  log_probs(LogitRow(nothing), 1, 1, of, top);
  EXPECT_EQ(of, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(top[0].id, 0);
}

}  // namespace
}  // namespace outrider
