// SPDX-License-Identifier: Apache-2.0
#include "engine/drafting/step_plan.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <span>
#include <vector>

#include "tests/support/proofs/chain_tree.h"

namespace outrider {
namespace {

using test::chain_tree;

// The counts after many rounds if each depth is accepted with the probability `share`.
DraftPast past_of(double share, int deepest, int n_rounds = 400, unsigned seed = 1) {
  DraftPast past(0.999);
  std::mt19937 random(seed);
  std::bernoulli_distribution accepted(share);
  for (int round = 0; round < n_rounds; ++round) {
    int depth = 0;
    while (depth < deepest && accepted(random)) ++depth;
    past.forget();
    past.add(chain_tree(deepest), deepest, depth);
  }
  return past;
}

// Passes cost as much as one row up to `free` rows, and in proportion from there on.
PassTimes roofline(int free) {
  std::vector<PassTimes::Measured> measured;
  for (int rows = 1; rows <= 512; ++rows) {
    measured.push_back({rows, std::max(1.0, static_cast<double>(rows) / free)});
  }
  return PassTimes(measured);
}

// With levels that cost nothing.
std::vector<int> depths_of(std::span<const PlannedText> texts, const PassTimes& passes,
                           const PassTimes& level = {}, int n_prompt = 0) {
  const PassTimes* const levels = &level;
  StepPlanner planner;
  planner.plan(texts, passes, {&levels, 1}, n_prompt);
  return planner.depths();
}

TEST(StepPlan, DraftsAsDeepAsPays) {
  const DraftPast good = past_of(0.9, 8);
  const DraftPast bad = past_of(0.02, 8);
  const auto plan = [](const DraftPast& past, const PassTimes& passes, int n_texts) {
    const PlannedText text{.deepest = 8, .drafter = 0, .past = &past};
    return depths_of(std::vector<PlannedText>(static_cast<std::size_t>(n_texts), text), passes);
  };
  // Free rows are used; rows that cost as much as their own passes are not.
  EXPECT_EQ(plan(good, roofline(100), 1), (std::vector<int>{8}));
  EXPECT_EQ(plan(bad, roofline(1), 1), (std::vector<int>{0}));
  EXPECT_EQ(plan(bad, roofline(1), 3), (std::vector<int>{0, 0, 0}));
  // As the batch fills, drafts shorten to nothing.
  double before = 8;
  for (const int n_texts : {2, 4, 8, 16, 32, 64}) {
    int sum = 0;
    for (const int depth : plan(past_of(0.5, 8), roofline(16), n_texts)) sum += depth;
    const double mean = static_cast<double>(sum) / n_texts;
    EXPECT_LE(mean, before) << n_texts;
    before = mean;
    if (n_texts == 64) {
      EXPECT_EQ(sum, 0);
    }
    if (n_texts == 2) {
      EXPECT_GT(sum, 0);
    }
  }
}

TEST(StepPlan, CountsWhatTheDrafterTakes) {
  const DraftPast past = past_of(0.7, 4);
  const PlannedText text{.deepest = 4, .drafter = 0, .past = &past};
  for (const double cost : {0.01, 0.2, 5.0}) {
    const std::vector<int> depths = depths_of({&text, 1}, roofline(100), PassTimes({{1, cost}}));
    if (cost == 0.01) {
      EXPECT_EQ(depths[0], 4);
    }
    if (cost == 5.0) {
      EXPECT_EQ(depths[0], 0);
    }
  }
}

// If the first level costs as much as all, a draft pays as a whole or not at all.
TEST(StepPlan, CountsFurtherLevelsAsTheirShareOfTheFirst) {
  const DraftPast past = past_of(0.7, 4);
  const auto depth_at = [&](double cost, double further_level) {
    const PlannedText text{
        .deepest = 4, .drafter = 0, .further_level = further_level, .past = &past};
    return depths_of({&text, 1}, roofline(100), PassTimes({{1, cost}})).front();
  };
  EXPECT_EQ(depth_at(0.9, 0), 4);
  EXPECT_LT(depth_at(0.9, 1), 4);
  EXPECT_EQ(depth_at(5, 0), 0);
  // Tokens: 1 + 0.7 + 0.49 + 0.343 + 0.24 in the time of the pass and a level of 0.9.
  const PlannedText text{.deepest = 4, .drafter = 0, .further_level = 0, .past = &past};
  const PassTimes level({{1, 0.9}});
  const PassTimes* const levels = &level;
  StepPlanner planner;
  planner.plan({&text, 1}, roofline(100), {&levels, 1}, 0);
  EXPECT_NEAR(planner.tokens_per_second(), 2.77 / 1.9, 0.1);
}

TEST(StepPlan, LeavesFixedTextsAlone) {
  const DraftPast bad = past_of(0.02, 8);
  const std::vector<PlannedText> texts = {{.deepest = 8, .fixed = true, .drafter = 0, .past = &bad},
                                          {.deepest = 8, .drafter = 0, .past = &bad},
                                          {.deepest = 0}};
  EXPECT_EQ(depths_of(texts, roofline(1)), (std::vector<int>{8, 0, 0}));
}

// Compares with all possible plans: none has many more tokens per second. (Depths are integers, for
// which the greedy choice is not always the best.)
TEST(StepPlan, IsAboutTheBestThereIs) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> share(0.05, 0.95);
  std::uniform_int_distribution<int> free(1, 12);
  constexpr int kDeepest = 3;
  for (int round = 0; round < 200; ++round) {
    std::vector<DraftPast> pasts;
    for (int i = 0; i < 4; ++i) {
      pasts.push_back(past_of(share(random), kDeepest, 50, static_cast<unsigned>(round * 4 + i)));
    }
    std::vector<PlannedText> texts;
    std::vector<std::array<DraftPast::Depth, kDeepest>> outlooks(4);
    for (const DraftPast& past : pasts) {
      past.look_ahead(nullptr, outlooks[texts.size()]);
      texts.push_back({.deepest = kDeepest, .drafter = 0, .past = &past});
    }
    const PassTimes passes = roofline(free(random));
    const int n_prompt = round % 3 == 0 ? 5 : 0;
    const auto rate = [&](const std::vector<int>& depths) {
      double tokens = 4;
      double rows = 4;
      for (std::size_t i = 0; i < texts.size(); ++i) {
        for (int depth = 1; depth <= depths[i]; ++depth) {
          tokens += outlooks[i][static_cast<std::size_t>(depth - 1)].accepted;
          rows += outlooks[i][static_cast<std::size_t>(depth - 1)].nodes;
        }
      }
      const int below = static_cast<int>(rows) + n_prompt;
      const double part = rows - std::floor(rows);
      return tokens / (passes.seconds(4) - passes.seconds(4 + n_prompt) +
                       (1 - part) * passes.seconds(below) + part * passes.seconds(below + 1));
    };
    const std::vector<int> depths = depths_of(texts, passes, {}, n_prompt);
    double best = 0;
    for (int all = 0; all < 256; ++all) {
      best = std::max(best, rate({all % 4, all / 4 % 4, all / 16 % 4, all / 64}));
    }
    EXPECT_GT(rate(depths), 0.98 * best) << round;
  }
}

// A draft that ends itself is taken whole or not at all, by the tokens and costs of all its depths.
TEST(StepPlan, TakesDraftsThatEndThemselvesWhole) {
  const DraftPast good = past_of(0.8, 8);
  const DraftPast bad = past_of(0.1, 8);
  const PassTimes level({{1, 0.05}});
  const auto plan = [&](const DraftPast& past) {
    const PlannedText text{.deepest = 8, .ends_itself = true, .drafter = 0, .past = &past};
    return depths_of({&text, 1}, roofline(6), level).front();
  };
  EXPECT_EQ(plan(good), 8);
  EXPECT_EQ(plan(bad), 0);
}

TEST(StepPlan, CatchesUpWhereTheTextWinsItBack) {
  const DraftPast past = past_of(0.8, 4);
  PlannedText text{.deepest = 4, .drafter = 0, .past = &past, .catch_up_seconds = 20};
  // Rounds of about three tokens take one second: 30 seconds are saved in 45 tokens.
  text.horizon = 20;
  EXPECT_EQ(depths_of({&text, 1}, roofline(100)).front(), 0);
  text.horizon = 200;
  EXPECT_EQ(depths_of({&text, 1}, roofline(100)).front(), 4);
}

TEST(StepPlan, SaysWhatItExpects) {
  const DraftPast past = past_of(0.999, 4, 4000);
  const PlannedText text{.deepest = 4, .drafter = 0, .past = &past};
  const PassTimes level({{1, 0.25}});
  const PassTimes* const levels = &level;
  StepPlanner planner;
  planner.plan({&text, 1}, roofline(100), {&levels, 1}, 0);
  EXPECT_NEAR(planner.tokens_per_second(), 5.0 / (1 + 4 * 0.25), 0.05);
}

}  // namespace
}  // namespace outrider
