// SPDX-License-Identifier: Apache-2.0
// Drafters that rate their tokens draft those that pay and report those they leave out.
#include "speculate/draft_worth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "sampling/counter_chance.h"
#include "speculate/drafters/lookup/ngram_drafter.h"
#include "speculate/drafters/lookup/suffix_drafter.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/proofs/listed_worth.h"

namespace outrider {
namespace {

using test::ListedWorth;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Tokens = std::vector<TokenId>;

Tokens draft(Drafter& drafter, const Tokens& text, DraftWorth* worth) {
  const Transform transform({.temperature = 0}, 1000);
  const TokenHistory history;
  const Context context{.id = 5, .tokens = text, .history = &history, .transform = &transform};
  CounterChance chance(1);
  const auto shape = chain_shape(8);
  DraftTree tree;
  tree.reset(text.back(), static_cast<std::int64_t>(text.size()));
  DraftJob job{.context = &context,
               .budget = {.depth = 8, .n_nodes = 8},
               .shape = shape.get(),
               .worth = worth,
               .chance = &chance,
               .tree = &tree};
  drafter.begin(context);
  drafter.propose({&job, 1});
  Tokens drafted;
  for (int node = 1; node < tree.n_nodes(); ++node) drafted.push_back(tree.node(node).token);
  drafter.end(5);
  return drafted;
}

// 7 8 9 was followed by 1 2 3 4 ..; three tokens match, then four, ..
const Tokens kOnce = {7, 8, 9, 1, 2, 3, 4, 5, 6, 10, 11, 12, 7, 8, 9};

TEST(DraftWorth, AChainEndsWhereItDoesNotPay) {
  NgramDrafter drafter(NgramDrafter::Options{.shortest = 1, .longest = 3, .length = 8});
  ListedWorth worth({0.5});
  // 3/4 * 4/5 = 0.6; times 5/6 it is 0.5, times 6/7 less.
  EXPECT_THAT(draft(drafter, kOnce, &worth), ElementsAre(1, 2, 3));
  EXPECT_THAT(worth.of_drafted, ElementsAre(3.0 / 4, 4.0 / 5, 5.0 / 6));
  ASSERT_EQ(worth.of_refused.size(), 1U);
  EXPECT_EQ(worth.of_refused[0].parent, 3);
  EXPECT_EQ(worth.of_refused[0].token, 4);
  EXPECT_EQ(worth.of_refused[0].certainty, 6.0 / 7);
}

TEST(DraftWorth, NothingIsDraftedWhereNothingPays) {
  NgramDrafter ngram(NgramDrafter::Options{.shortest = 1, .longest = 3, .length = 8});
  SuffixDrafter suffix(SuffixDrafter::Options{});
  for (Drafter* const drafter : {static_cast<Drafter*>(&ngram), static_cast<Drafter*>(&suffix)}) {
    ListedWorth worth({0.9});
    EXPECT_THAT(draft(*drafter, kOnce, &worth), IsEmpty()) << drafter->name();
    EXPECT_THAT(worth.of_drafted, IsEmpty());
    ASSERT_EQ(worth.of_refused.size(), 1U);
    EXPECT_EQ(worth.of_refused[0].parent, 0);
    EXPECT_EQ(worth.of_refused[0].token, 1);
    EXPECT_EQ(worth.of_refused[0].certainty, 3.0 / 4);
  }
}

TEST(DraftWorth, WithoutOneAllIsDrafted) {
  NgramDrafter drafter(NgramDrafter::Options{.shortest = 1, .longest = 3, .length = 8});
  EXPECT_EQ(draft(drafter, kOnce, nullptr).size(), 8U);
}

TEST(DraftWorth, EachFurtherTokenHasItsPrice) {
  SuffixDrafter drafter(SuffixDrafter::Options{});
  ListedWorth worth({0.1, 0.55, 0.99});
  EXPECT_THAT(draft(drafter, kOnce, &worth), ElementsAre(1, 2));
  EXPECT_THAT(worth.of_drafted, ElementsAre(3.0 / 4, 4.0 / 5));
}

// After 9: 1 twice, 2 once; all three tokens together were followed by 1 alone.
TEST(DraftWorth, WhatFollowsDifferentlyIsLessCertain) {
  SuffixDrafter drafter(SuffixDrafter::Options{});
  const Tokens text = {9, 1, 5, 9, 2, 6, 9, 1, 7, 9};
  ListedWorth worth({0.2});
  EXPECT_THAT(draft(drafter, text, &worth), ElementsAre(1));
  EXPECT_THAT(worth.of_drafted, ElementsAre(2.0 / 3 * 1 / 2));
}

}  // namespace
}  // namespace outrider
