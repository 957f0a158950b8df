// SPDX-License-Identifier: Apache-2.0
#include "speculate/rules/budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "sampling/divergence.h"
#include "speculate/rules/lossy.h"
#include "tests/support/proofs/fixed_views.h"

namespace outrider {
namespace {

using test::FixedViews;
using test::random_logits;
using test::views_of;

constexpr double kExact = 1e-12;  // roundings of the sums, a few units of 1e-16 per token

FixedViews random_views(int vocabulary, std::mt19937& random) {
  const auto draft = random_logits(vocabulary, random);
  const auto target = random_logits(vocabulary, random);
  return views_of(draft, target, Transform({.temperature = 1}, vocabulary));
}

TEST(Budget, IsSpentAndNeverExceeded) {
  std::mt19937 random(3);
  int n_spent = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const FixedViews views = random_views(trial % 2 == 0 ? 5 : 300, random);
    for (const double budget : {1e-9, 1e-3, 0.05, 0.4, 2.0}) {
      Distribution dist;
      fastest_within(views.draft_prob, views.target_prob, budget, dist);
      double sum = 0;
      for (const double prob : dist.probs) sum += prob;
      EXPECT_NEAR(sum, 1, kExact);
      const double kl = kl_divergence(dist, views.target_prob);
      EXPECT_LE(kl, budget * (1 + 1e-9) + 1e-15);
      const double all = kl_divergence(views.draft_prob, views.target_prob);
      if (all <= budget) {
        EXPECT_EQ(dist.probs, views.draft_prob.probs);
      } else if (!std::isinf(all)) {
        // 1e-9 of a budget of 1e-9 is below the resolution of sums near 1.
        EXPECT_NEAR(kl, budget, 1e-9 * budget + 1e-14);
        ++n_spent;
      }
    }
  }
  EXPECT_GT(n_spent, 400);  // in the others, the drafter has a token that the target never emits
}

// No other distribution within the budget is closer to the drafter's: compares with a fine grid of
// all distributions over three tokens.
TEST(Budget, RejectsTheFewestOfAllWithinTheBudget) {
  std::mt19937 random(9);
  constexpr int kSteps = 120;
  for (int trial = 0; trial < 40; ++trial) {
    const FixedViews views = random_views(3, random);
    for (const double budget : {0.01, 0.1, 0.5}) {
      Distribution dist;
      fastest_within(views.draft_prob, views.target_prob, budget, dist);
      const double rejected = total_variation(dist, views.draft_prob);
      double best = 1;
      for (int i = 0; i <= kSteps; ++i) {
        for (int j = 0; i + j <= kSteps; ++j) {
          const double probs[] = {double(i) / kSteps, double(j) / kSteps,
                                  double(kSteps - i - j) / kSteps};
          const Distribution other = Distribution::dense(probs);
          if (kl_divergence(other, views.target_prob) > budget) continue;
          best = std::min(best, total_variation(other, views.draft_prob));
        }
      }
      EXPECT_LE(rejected, best + kExact);
    }
  }
}

TEST(Budget, RejectsNoMoreThanTheBestLinearMixture) {
  std::mt19937 random(10);
  double largest_gain = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const FixedViews views = random_views(12, random);
    if (std::isinf(kl_divergence(views.draft_prob, views.target_prob))) continue;
    const double budget = 0.1;
    const auto mixture = [&](double share) {
      Distribution mixed;
      for_each_in_either(views.draft_prob, views.target_prob,
                         [&](TokenId id, double in_draft, double in_target) {
                           mixed.ids.push_back(id);
                           mixed.probs.push_back(share * in_draft + (1 - share) * in_target);
                         });
      return mixed;
    };
    double low = 0;
    double high = 1;
    for (int step = 0; step < 60; ++step) {
      const double middle = (low + high) / 2;
      (kl_divergence(mixture(middle), views.target_prob) <= budget ? low : high) = middle;
    }
    Distribution dist;
    fastest_within(views.draft_prob, views.target_prob, budget, dist);
    const double gain =
        total_variation(mixture(low), views.draft_prob) - total_variation(dist, views.draft_prob);
    EXPECT_GE(gain, -kExact);
    largest_gain = std::max(largest_gain, gain);
  }
  EXPECT_GT(largest_gain, 0.01);
}

// A budget determines lossy's alpha, with beta = auto.
TEST(Budget, IsLossyWithAlphaSolved) {
  std::mt19937 random(11);
  int n_capped = 0;
  for (int trial = 0; trial < 100; ++trial) {
    FixedViews views = random_views(8, random);
    Distribution dist;
    fastest_within(views.draft_prob, views.target_prob, 0.05, dist);
    double ceiling = 1;
    for_each_in_either(dist, views.target_prob, [&](TokenId, double in_dist, double in_target) {
      if (in_target > 0) ceiling = std::max(ceiling, in_dist / in_target);
    });
    if (total_variation(dist, views.draft_prob) == 0 || ceiling < 1 + 1e-6) continue;
    ++n_capped;
    Distribution lossy;
    LossyRule(1 - 1 / ceiling, std::nullopt).rule_prob(views, 0, lossy);
    EXPECT_LT(total_variation(dist, lossy), 1e-9);
  }
  EXPECT_GT(n_capped, 50);
}

TEST(Budget, Extremes) {
  const Distribution draft = Distribution::point_mass(1);
  const Distribution target = Distribution::point_mass(2);
  Distribution dist;
  fastest_within(draft, target, 100, dist);  // none of the draft's tokens has a finite price
  EXPECT_EQ(dist.ids, target.ids);
  fastest_within(draft, target, std::numeric_limits<double>::infinity(), dist);
  EXPECT_EQ(dist.ids, draft.ids);
  fastest_within(draft, draft, 0, dist);
  EXPECT_EQ(dist.ids, draft.ids);
  fastest_within({{0, 1}, {0.5, 0.5}}, {{0, 1}, {0.9, 0.1}}, 0, dist);
  EXPECT_EQ(dist.probs, (std::vector<double>{0.9, 0.1}));
  fastest_within({{0, 1}, {0.5, 0.5}}, {{0, 1}, {0.9, 0.1}}, -1, dist);
  EXPECT_EQ(dist.probs, (std::vector<double>{0.9, 0.1}));
  // If part of the draft cannot be had at any price, the rest can.
  fastest_within({{0, 1}, {0.5, 0.5}}, {{1, 2}, {0.5, 0.5}}, 10, dist);
  EXPECT_EQ(dist.prob(0), 0);
  EXPECT_GE(dist.prob(1), 0.5);
}

TEST(Budget, OfATextIsWhatIsLeft) {
  FixedViews views = views_of({0.5, 0.5}, {0.9, 0.1});
  const BudgetRule rule({.per_text = 0.2});
  Distribution dist;
  Distribution expected;
  for (const double spent : {0.0, 0.15, 0.2, 0.3}) {
    views.spent = spent;
    rule.rule_prob(views, 0, dist);
    fastest_within(views.draft_prob, views.target_prob, 0.2 - spent, expected);
    EXPECT_EQ(dist.probs, expected.probs);
  }
  // The cap per token holds as well.
  views.spent = 0.05;
  BudgetRule({.per_token = 0.01, .per_text = 0.2}).rule_prob(views, 0, dist);
  fastest_within(views.draft_prob, views.target_prob, 0.01, expected);
  EXPECT_EQ(dist.probs, expected.probs);
}

}  // namespace
}  // namespace outrider
