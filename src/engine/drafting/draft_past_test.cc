// SPDX-License-Identifier: Apache-2.0
#include "engine/drafting/draft_past.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "engine/drafting/further_level.h"
#include "engine/drafting/paying_stop.h"
#include "tests/support/proofs/chain_tree.h"

namespace outrider {
namespace {

using test::chain_tree;

using Outlook = std::array<DraftPast::Depth, 5>;

Outlook outlook_of(const DraftPast& past, const DraftPast* prior = nullptr) {
  Outlook outlook;
  past.look_ahead(prior, outlook);
  return outlook;
}

TEST(DraftPast, CountsByDepth) {
  DraftPast past(1);
  past.add(chain_tree(4), 4, 2);
  past.add(chain_tree(4), 4, 4);
  past.add(chain_tree(2), 4, 0);  // the drafter had no more
  const Outlook outlook = outlook_of(past);
  // Two of 2 + 1 rounds' weight: beside one round that guesses 0.75.
  const double first = (2 + 0.75) / 4;
  EXPECT_DOUBLE_EQ(outlook[0].accepted, first);
  EXPECT_DOUBLE_EQ(outlook[0].nodes, 1);
  // Two rounds reached it; the guess of one more round is above the first depth's rate.
  const double second = (2 + std::sqrt(first)) / 3;
  EXPECT_DOUBLE_EQ(outlook[1].accepted, first * second);
  const double third = (1 + std::sqrt(second)) / 3;
  EXPECT_DOUBLE_EQ(outlook[2].accepted, first * second * third);
  EXPECT_DOUBLE_EQ(outlook[2].nodes, (2 + first * second) / 4);
  // No data: it may be reached and accepted.
  EXPECT_GT(outlook[4].accepted, 0.8 * outlook[3].accepted);
  EXPECT_EQ(past.n_rounds(), 3);
}

TEST(DraftPast, TakesAPriorWhereLittleIsKnown) {
  DraftPast prior(1);
  for (int i = 0; i < 400; ++i) prior.add(chain_tree(3), 3, i % 2 == 0 ? 3 : 0);
  DraftPast own(1);
  EXPECT_NEAR(outlook_of(own, &prior)[0].accepted, 0.5, 0.01);
  EXPECT_NEAR(outlook_of(own, &prior)[2].accepted, 0.5, 0.02);
  for (int i = 0; i < 500; ++i) own.add(chain_tree(3), 3, 3);
  EXPECT_GT(outlook_of(own, &prior)[2].accepted, 0.95);
}

TEST(DraftPast, ForgetsAndSupposes) {
  DraftPast past(0.9);
  for (int i = 0; i < 200; ++i) {
    past.forget();
    past.add(chain_tree(1), 1, 0);
  }
  EXPECT_LT(outlook_of(past)[0].accepted, 0.1);
  for (int i = 0; i < 50; ++i) {
    past.forget();
    past.add(chain_tree(1), 1, 1);
  }
  EXPECT_GT(outlook_of(past)[0].accepted, 0.95);
  past.suppose(4, 0.5);
  EXPECT_EQ(past.n_rounds(), 4);
  EXPECT_DOUBLE_EQ(outlook_of(past)[0].accepted, (2 + 0.75) / 5);
}

TEST(TrustCurve, LearnsWhatAProbabilityIsWorth) {
  TrustCurve trust;
  EXPECT_DOUBLE_EQ(trust.stands(0.5), 0.5);  // the drafter is trusted at first
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform;
  for (int i = 0; i < 4000; ++i) {
    const double said = uniform(random);
    trust.add(said, uniform(random) < said * said);  // it is overconfident
  }
  EXPECT_NEAR(trust.stands(0.5), 0.27, 0.12);
  EXPECT_NEAR(trust.stands(0.97), 0.94, 0.08);
  EXPECT_NEAR(trust.mean(), 1.0 / 3, 0.08);
}

TEST(TrustOfText, FollowsWhatStandsInTheText) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> uniform;
  TrustOfText text;
  EXPECT_DOUBLE_EQ(text.shifted(0.3), 0.3);
  // Tokens are accepted in 0.9 of the cases where the curve says 0.5: odds of 9 to 1.
  double sum = 0;
  for (int i = 0; i < 4000; ++i) {
    text.add(0.5, uniform(random) < 0.9);
    if (i >= 1000) sum += text.shifted(0.5);
  }
  EXPECT_NEAR(sum / 3000, 0.9, 0.03);
  // Certainty stays; all other odds are scaled alike: 1/9 becomes about 1.
  EXPECT_EQ(text.shifted(0), 0);
  EXPECT_EQ(text.shifted(1), 1);
  EXPECT_NEAR(text.shifted(0.1), 0.5, 0.2);
  for (int i = 0; i < 40; ++i) text.add(0.5, false);
  EXPECT_LT(text.shifted(0.5), 0.2);
  text.forget();
  EXPECT_DOUBLE_EQ(text.shifted(0.3), 0.3);
}

TEST(FurtherLevel, IsTheSlopeOfADraftsTime) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform;
  // 0.5 levels to begin and 0.5 per level: the absolute time of a mean level does not matter.
  FurtherLevel further;
  EXPECT_EQ(further.in_mean_levels(), 1);
  for (int i = 0; i < 500; ++i) {
    const auto levels = static_cast<double>(1 + random() % 5);
    further.add(levels, 0.5 + 0.5 * levels + 0.1 * uniform(random));
    further.add(levels, 100);  // the machine was suspended
  }
  EXPECT_NEAR(further.in_mean_levels(), 0.5, 0.05);
  // Drafts of one depth give no slope.
  FurtherLevel same;
  for (int i = 0; i < 100; ++i) same.add(3, 3 + uniform(random));
  EXPECT_NEAR(same.in_mean_levels(), 1, 1e-9);
}

TEST(PayingStop, EndsWhereTheNextTokenDoesNotPay) {
  TrustCurve trust;
  PayingStop stop(nullptr);
  PayingStop::Prices prices;
  prices.fill(0.25);
  // Without data a token is accepted in 0.75 of the cases.
  stop.begin(trust, TrustOfText(), prices);
  EXPECT_FALSE(stop.stop_after(1, 0.9));  // 0.9 * 0.75
  EXPECT_FALSE(stop.stop_after(2, 0.5));  // 0.45 * 0.75
  EXPECT_TRUE(stop.stop_after(3, 0.6));   // 0.27 * 0.75
  EXPECT_EQ(stop.raw_probs().size(), 3U);
  // The same draft with a higher price of the third token.
  prices[1] = 0.4;
  stop.begin(trust, TrustOfText(), prices);
  EXPECT_FALSE(stop.stop_after(1, 0.9));
  EXPECT_TRUE(stop.stop_after(2, 0.5));
  // A text whose drafts are accepted although the drafter is unsure.
  TrustOfText text;
  for (int i = 0; i < 30; ++i) text.add(0.5, true);
  stop.begin(trust, text, prices);
  EXPECT_FALSE(stop.stop_after(1, 0.9));
  EXPECT_FALSE(stop.stop_after(2, 0.5));
  stop.begin_free();
  EXPECT_FALSE(stop.stop_after(1, 0.001));
  EXPECT_EQ(stop.raw_probs().size(), 1U);
}

}  // namespace
}  // namespace outrider
