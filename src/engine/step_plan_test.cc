#include "engine/step_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "speculate/draft_tree.h"

namespace outrider {
namespace {

// A chain of so many drafted tokens.
DraftTree chain(int length) {
  DraftTree tree;
  tree.reset(0, 1);
  for (int i = 0; i < length; ++i) tree.add_child(i, 1, kPointMass);
  return tree;
}

// What many rounds leave behind where each depth is accepted with the probability `share`.
DraftPast past_of(double share, int deepest, int n_rounds = 400, unsigned seed = 1) {
  DraftPast past(0.999);
  std::mt19937 random(seed);
  std::bernoulli_distribution accepted(share);
  for (int round = 0; round < n_rounds; ++round) {
    int depth = 0;
    while (depth < deepest && accepted(random)) ++depth;
    past.forget();
    past.add(chain(deepest), deepest, depth);
  }
  return past;
}

// Costs nothing beyond a pass of one row up to `free` rows, and a row's share from there on.
PassTimes roofline(int free) {
  std::vector<PassTimes::Measured> measured;
  for (int rows = 1; rows <= 512; ++rows) {
    measured.push_back({rows, std::max(1.0, static_cast<double>(rows) / free)});
  }
  return PassTimes(measured);
}

TEST(DraftPast, CountsByDepth) {
  DraftPast past(1);
  past.add(chain(4), 4, 2);
  past.add(chain(4), 4, 4);
  past.add(chain(2), 4, 0);  // the drafter had no more
  // Beside one round that says "accepted".
  EXPECT_DOUBLE_EQ(past.at(1, nullptr).accepted, (2 + 1.0) / 4);
  EXPECT_DOUBLE_EQ(past.at(2, nullptr).accepted, (2 + 1.0) / 4);
  EXPECT_DOUBLE_EQ(past.at(3, nullptr).accepted, (1 + 1.0) / 4);
  EXPECT_DOUBLE_EQ(past.at(3, nullptr).nodes, (2 + 1.0) / 4);
  EXPECT_DOUBLE_EQ(past.at(5, nullptr).accepted, 1);  // nothing is known
}

TEST(DraftPast, TakesAPriorWhereLittleIsKnown) {
  const DraftPast prior = past_of(0.5, 3);
  DraftPast own(1);
  EXPECT_NEAR(own.at(1, &prior).accepted, 0.5, 0.06);
  for (int i = 0; i < 500; ++i) own.add(chain(3), 3, 3);
  EXPECT_GT(own.at(3, &prior).accepted, 0.95);
}

TEST(DraftPast, Forgets) {
  DraftPast past(0.9);
  for (int i = 0; i < 200; ++i) {
    past.forget();
    past.add(chain(1), 1, 0);
  }
  EXPECT_LT(past.at(1, nullptr).accepted, 0.1);
  for (int i = 0; i < 50; ++i) {
    past.forget();
    past.add(chain(1), 1, 1);
  }
  EXPECT_GT(past.at(1, nullptr).accepted, 0.95);
}

TEST(StepPlan, DraftsAsDeepAsPays) {
  const DraftPast good = past_of(0.9, 8);
  const DraftPast bad = past_of(0.02, 8);
  const std::vector<PassTimes> levels(1);
  std::vector<int> depths;
  const auto plan = [&](const DraftPast& past, const PassTimes& passes, int n_texts) {
    const PlannedText text{.deepest = 8, .drafter = 0, .past = &past};
    plan_drafts(std::vector<PlannedText>(static_cast<std::size_t>(n_texts), text), passes, levels,
                0, depths);
    return depths;
  };
  // Rows that cost nothing are taken; rows that cost as much as passes of their own are not.
  EXPECT_EQ(plan(good, roofline(100), 1), (std::vector<int>{8}));
  EXPECT_EQ(plan(bad, roofline(1), 1), (std::vector<int>{0}));
  EXPECT_EQ(plan(bad, roofline(1), 3), (std::vector<int>{0, 0, 0}));
  // As the batch fills, drafts get shorter, down to none.
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
  std::vector<int> depths;
  const PlannedText text{.deepest = 4, .drafter = 0, .past = &past};
  for (const double cost : {0.01, 0.2, 5.0}) {
    const std::vector<PassTimes> levels = {PassTimes({{1, cost}})};
    plan_drafts({&text, 1}, roofline(100), levels, 0, depths);
    if (cost == 0.01) {
      EXPECT_EQ(depths[0], 4);
    }
    if (cost == 5.0) {
      EXPECT_EQ(depths[0], 0);
    }
  }
}

TEST(StepPlan, LeavesFixedTextsAlone) {
  const DraftPast bad = past_of(0.02, 8);
  const std::vector<PassTimes> levels(1);
  std::vector<int> depths;
  const std::vector<PlannedText> texts = {{.deepest = 8, .fixed = true, .drafter = 0, .past = &bad},
                                          {.deepest = 8, .drafter = 0, .past = &bad},
                                          {.deepest = 0}};
  plan_drafts(texts, roofline(1), levels, 0, depths);
  EXPECT_EQ(depths, (std::vector<int>{8, 0, 0}));
}

// Against all plans there are: none has more tokens a second.
TEST(StepPlan, IsTheBestThereIs) {
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
    for (const DraftPast& past : pasts) {
      texts.push_back({.deepest = kDeepest, .drafter = 0, .past = &past});
    }
    const PassTimes passes = roofline(free(random));
    const std::vector<PassTimes> levels(1);  // a drafter that takes no time
    const int n_prompt = round % 3 == 0 ? 5 : 0;
    const auto rate = [&](const std::vector<int>& depths) {
      double tokens = 4;
      double rows = 4;
      for (std::size_t i = 0; i < texts.size(); ++i) {
        for (int depth = 1; depth <= depths[i]; ++depth) {
          tokens += pasts[i].at(depth, nullptr).accepted;
          rows += pasts[i].at(depth, nullptr).nodes;
        }
      }
      return tokens /
             (passes.seconds(4) + passes.seconds(static_cast<int>(std::lround(rows)) + n_prompt) -
              passes.seconds(4 + n_prompt));
    };
    std::vector<int> depths;
    plan_drafts(texts, passes, levels, n_prompt, depths);
    double best = 0;
    for (int all = 0; all < 256; ++all) {
      best = std::max(best, rate({all % 4, all / 4 % 4, all / 16 % 4, all / 64}));
    }
    EXPECT_NEAR(rate(depths), best, 1e-9 * best) << round;
  }
}

}  // namespace
}  // namespace outrider
