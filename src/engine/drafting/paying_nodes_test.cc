// SPDX-License-Identifier: Apache-2.0
#include "engine/drafting/paying_nodes.h"

#include <gtest/gtest.h>

#include "tests/support/proofs/chain_tree.h"

namespace outrider {
namespace {

// Certainties in different classes of the curve.
constexpr double kSure = 0.97;
constexpr double kLikely = 0.8;
constexpr double kUnsure = 0.4;

TEST(PayingNodes, APriceHoldsForAllNodesBehindTheLastOne) {
  TrustCurve curve;
  PayingStop::Prices prices;
  for (std::size_t i = 0; i < prices.size(); ++i) prices[i] = static_cast<double>(i);
  PayingNodes nodes;
  nodes.begin(curve, prices);
  EXPECT_EQ(nodes.price(1), 0);
  EXPECT_EQ(nodes.price(3), 2);
  EXPECT_EQ(nodes.price(1000), static_cast<double>(prices.size() - 1));
}

// Two of three were accepted. The third was judged, since its parent was accepted; the token
// refused after it was not.
TEST(PayingNodes, LearnsWhatWasJudged) {
  TrustCurve curve;
  PayingNodes nodes;
  nodes.begin(curve, {});
  nodes.drafted(kSure);
  nodes.drafted(kSure);
  nodes.drafted(kLikely);
  nodes.refused(3, 1, kUnsure);
  const double sure = curve.stands(kSure);
  const double likely = curve.stands(kLikely);
  const double unsure = curve.stands(kUnsure);
  Verdict verdict;
  verdict.path = {1, 2};
  verdict.next = 1;
  nodes.learn(test::chain_tree(3), verdict, curve);
  EXPECT_GT(curve.stands(kSure), sure);
  EXPECT_LT(curve.stands(kLikely), likely);
  EXPECT_EQ(curve.stands(kUnsure), unsure);
}

TEST(PayingNodes, LearnsWhatWouldHaveStood) {
  for (const TokenId said : {1, 2}) {
    TrustCurve curve;
    PayingNodes nodes;
    nodes.begin(curve, {});
    nodes.refused(0, 1, kUnsure);
    const double before = curve.stands(kUnsure);
    Verdict verdict;
    verdict.next = said;
    nodes.learn(test::chain_tree(0), verdict, curve);
    if (said == 1) {
      EXPECT_GT(curve.stands(kUnsure), before);
    } else {
      EXPECT_LT(curve.stands(kUnsure), before);
    }
  }
}

// Two nodes in a row gain p - 0.25 and p * p - 0.5.
TEST(PayingNodes, GainIsWhatIsExpectedAboveThePrices) {
  TrustCurve curve;
  PayingStop::Prices prices;
  prices.fill(0.5);
  prices[0] = 0.25;
  PayingNodes nodes;
  nodes.begin(curve, prices);
  nodes.drafted(kSure);
  nodes.drafted(kSure);
  const double p = curve.stands(kSure);
  EXPECT_NEAR(nodes.gain(test::chain_tree(2)), p - 0.25 + p * p - 0.5, 1e-12);
}

// chain_tree's tokens are 1.
TEST(PayingNodes, OfADraftThatIsWithdrawnTheFirstTokenTeaches) {
  for (const TokenId first : {1, 2}) {
    TrustCurve curve;
    PayingNodes nodes;
    nodes.begin(curve, {});
    nodes.drafted(kUnsure);
    nodes.drafted(kLikely);
    nodes.withdraw(test::chain_tree(2));
    const double unsure = curve.stands(kUnsure);
    const double likely = curve.stands(kLikely);
    nodes.learn_aside(first, curve);
    EXPECT_EQ(curve.stands(kUnsure) > unsure, first == 1);
    EXPECT_NE(curve.stands(kUnsure), unsure);
    EXPECT_EQ(curve.stands(kLikely), likely);
  }
}

// A draft that something else changed teaches nothing.
TEST(PayingNodes, LearnsNothingOfADraftThatIsNotTheirs) {
  TrustCurve curve;
  PayingNodes nodes;
  nodes.begin(curve, {});
  nodes.drafted(kSure);
  const double before = curve.stands(kSure);
  nodes.learn(test::chain_tree(2), Verdict(), curve);
  EXPECT_EQ(curve.stands(kSure), before);
}

}  // namespace
}  // namespace outrider
