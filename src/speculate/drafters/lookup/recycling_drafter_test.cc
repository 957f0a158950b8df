// SPDX-License-Identifier: Apache-2.0
// Token Recycling: its matrix, the candidates that a pass leaves there, and the trees grown from
// it; and the output's distribution, by enumeration. tests/real/self_drafting_test.cc compares its
// rounds with the paper's on real weights.
#include "speculate/drafters/lookup/recycling_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "outrider/error.h"
#include "sampling/counter_chance.h"
#include "speculate/registry/drafter_registry.h"
#include "speculate/tree_shapes/dynamic_shape.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/proofs/checked_drafter.h"
#include "tests/support/proofs/enumerated_process.h"
#include "tests/support/proofs/exactness.h"
#include "tests/support/proofs/listed_worth.h"

namespace outrider {
namespace {

using test::ListedWorth;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Tokens = std::vector<TokenId>;
using Paths = std::vector<Tokens>;

// --- The matrix ------------------------------------------------------------------------------

std::vector<CandidateMatrix::Candidate> candidates(const Tokens& tokens) {
  std::vector<CandidateMatrix::Candidate> all;
  for (const TokenId token : tokens)
    all.push_back({token, 1.0F / static_cast<float>(tokens.size())});
  return all;
}

Tokens row(const CandidateMatrix& matrix, TokenId token) {
  Tokens tokens;
  for (const CandidateMatrix::Candidate& one : matrix.row(token)) tokens.push_back(one.token);
  return tokens;
}

TEST(CandidateMatrix, TheNewestCandidatesStayAlone) {
  CandidateMatrix matrix(3);
  EXPECT_THAT(row(matrix, 1), IsEmpty());
  matrix.write(1, candidates({2, 3}));
  matrix.write(4, candidates({5}));
  matrix.write(1, candidates({6}));
  EXPECT_THAT(row(matrix, 1), ElementsAre(6));
  EXPECT_THAT(row(matrix, 4), ElementsAre(5));
  EXPECT_EQ(matrix.n_rows(), 2);
}

TEST(CandidateMatrix, TheRowWrittenLongestAgoMakesRoom) {
  CandidateMatrix matrix(2);
  matrix.write(1, candidates({11}));
  matrix.write(2, candidates({12}));
  matrix.write(1, candidates({13}));  // not the oldest any more
  matrix.write(3, candidates({14}));
  EXPECT_EQ(matrix.n_rows(), 2);
  EXPECT_THAT(row(matrix, 2), IsEmpty());
  EXPECT_THAT(row(matrix, 1), ElementsAre(13));
  EXPECT_THAT(row(matrix, 3), ElementsAre(14));
  matrix.write(2, candidates({15}));
  EXPECT_THAT(row(matrix, 1), IsEmpty());
  CandidateMatrix one(1);
  one.write(1, candidates({2}));
  one.write(3, candidates({4}));
  EXPECT_THAT(row(one, 1), IsEmpty());
  EXPECT_THAT(row(one, 3), ElementsAre(4));
}

TEST(CandidateMatrix, RowsOfAnotherComeInTheirOrder) {
  CandidateMatrix first(3);
  first.write(1, candidates({11}));
  first.write(2, candidates({12}));
  first.write(3, candidates({13}));
  first.write(1, candidates({14}));
  CandidateMatrix second(2);
  second.write(4, candidates({15}));
  second.write_all(first);
  EXPECT_THAT(row(second, 2), IsEmpty());
  EXPECT_THAT(row(second, 3), ElementsAre(13));
  EXPECT_THAT(row(second, 1), ElementsAre(14));
  // A moved matrix keeps its rows.
  CandidateMatrix moved = std::move(second);
  moved.write(3, candidates({16}));
  moved.write(5, candidates({17}));
  EXPECT_THAT(row(moved, 1), IsEmpty());
  EXPECT_THAT(row(moved, 3), ElementsAre(16));
}

// --- Drafts ----------------------------------------------------------------------------------

constexpr int kVocabulary = 12;

// A text for which a test sets the target's candidates.
class Told {
 public:
  Told(RecyclingDrafter& drafter, SequenceId id, Tokens tokens,
       const SamplingParams& sampling = {.temperature = 0})
      : drafter_(&drafter), id_(id), tokens_(std::move(tokens)), transform_(sampling, kVocabulary) {
    history_.add_prompt(tokens_);
    drafter_->begin(context());
  }

  // The paths of the draft's nodes, in order.
  Paths draft(const TreeShape& shape, DraftWorth* worth = nullptr) {
    tree_.reset(tokens_.back(), static_cast<std::int64_t>(tokens_.size()));
    const Context now = context();
    CounterChance chance(1);
    DraftJob job{.context = &now,
                 .budget = {.depth = shape.depth(), .n_nodes = shape.n_nodes()},
                 .shape = &shape,
                 .worth = worth,
                 .chance = &chance,
                 .tree = &tree_};
    drafter_->propose({&job, 1});
    Paths paths(static_cast<std::size_t>(tree_.n_drafted()));
    for (int node = 1; node <= tree_.n_drafted(); ++node) {
      EXPECT_EQ(tree_.node(node).proposal, kPointMass);
      tree_.path_tokens(node, paths[static_cast<std::size_t>(node) - 1]);
    }
    return paths;
  }
  Paths draft_chain(int length) { return draft(*chain_shape(length)); }
  Paths draft_widths(const std::vector<int>& widths) {
    return draft(FixedShape(widths_tree(widths), Siblings::top_ranks));
  }

  // Judges the draft. likeliest[node]: the tokens that the target allows after a node, each e times
  // as likely as the next.
  void judge(const Paths& likeliest, const std::vector<int>& path, TokenId next) {
    ASSERT_EQ(static_cast<int>(likeliest.size()), tree_.n_nodes());
    ForwardOutput output;
    float* logits = output.logits.start_pass(tree_.n_nodes(), kVocabulary);
    for (const Tokens& behind : likeliest) {
      std::fill_n(logits, kVocabulary, -std::numeric_limits<float>::infinity());
      for (std::size_t rank = 0; rank < behind.size(); ++rank) {
        logits[behind[rank]] = -static_cast<float>(rank);
      }
      logits += kVocabulary;
    }
    Verdict verdict;
    verdict.path = path;
    verdict.next = next;
    for (const int node : path) commit(tree_.node(node).token);
    commit(next);
    const Context now = context();
    const RoundResult result{
        .context = &now, .tree = &tree_, .verdict = &verdict, .target = &output};
    drafter_->observe({&result, 1});
  }

  // A round without a draft.
  void say(const Tokens& likeliest, TokenId next) {
    tree_.reset(tokens_.back(), static_cast<std::int64_t>(tokens_.size()));
    judge({likeliest}, {}, next);
  }
  void end() { drafter_->end(id_); }

 private:
  Context context() const {
    return {.id = id_, .tokens = tokens_, .history = &history_, .transform = &transform_};
  }
  void commit(TokenId token) {
    tokens_.push_back(token);
    history_.add_generated(token);
  }

  RecyclingDrafter* drafter_;
  SequenceId id_;
  Tokens tokens_;
  Transform transform_;
  TokenHistory history_;
  DraftTree tree_;
};

TEST(RecyclingDrafter, DraftsBehindTokensThatWereRunAndNoOthers) {
  RecyclingDrafter drafter({});
  Told text(drafter, 1, {5, 6, 5, 6, 5});
  EXPECT_THAT(text.draft_chain(3), IsEmpty());  // prompts write nothing
  text.say({6, 7}, 6);
  EXPECT_THAT(text.draft_chain(3), IsEmpty());
  text.say({5}, 5);
  EXPECT_THAT(text.draft_chain(3), ElementsAre(Tokens{6}, Tokens{6, 5}, Tokens{6, 5, 6}));
  EXPECT_THAT(text.draft_chain(1), ElementsAre(Tokens{6}));
}

TEST(RecyclingDrafter, GrowsBreadthFirstInTheShapeAskedFor) {
  RecyclingDrafter drafter({});
  Told text(drafter, 1, {5});
  text.say({6, 7, 8}, 6);
  text.say({5, 9}, 8);
  text.say({9, 10, 11}, 5);
  EXPECT_THAT(text.draft_widths({2, 2}),
              ElementsAre(Tokens{6}, Tokens{7}, Tokens{6, 5}, Tokens{6, 9}));
  // The shape's places keep their parents: nothing is known after 7, and the third node has one
  // child.
  const std::vector<int> n_children = {3, 2, 2, 1};
  EXPECT_THAT(
      text.draft(FixedShape(n_children, Siblings::top_ranks)),
      ElementsAre(Tokens{6}, Tokens{7}, Tokens{8}, Tokens{6, 5}, Tokens{6, 9}, Tokens{8, 9}));
}

TEST(RecyclingDrafter, KeepsAsManyCandidatesAsAskedFor) {
  RecyclingDrafter drafter({.n_candidates = 2});
  Told text(drafter, 1, {5});
  text.say({6, 7, 8}, 5);
  EXPECT_THAT(text.draft_widths({3}), ElementsAre(Tokens{6}, Tokens{7}));
}

TEST(RecyclingDrafter, NodesThatDidNotStandAreRecycled) {
  RecyclingDrafter drafter({});
  Told text(drafter, 1, {5});
  text.say({6, 7}, 5);
  ASSERT_THAT(text.draft_widths({2}), ElementsAre(Tokens{6}, Tokens{7}));
  text.judge({{6, 8}, {1}, {2, 3}}, {1}, 7);
  EXPECT_THAT(text.draft_widths({2}), ElementsAre(Tokens{2}, Tokens{3}));
  text.judge({{9}, {10}, {11}}, {}, 3);
  EXPECT_THAT(text.draft_chain(2), ElementsAre(Tokens{11}));
}

TEST(RecyclingDrafter, WhatAPassFoundIsNewerThanWhatWasThere) {
  RecyclingDrafter drafter({});
  Told text(drafter, 1, {5});
  text.say({6, 7}, 5);
  text.say({8}, 5);
  EXPECT_THAT(text.draft_widths({2}), ElementsAre(Tokens{8}));
}

TEST(RecyclingDrafter, OfOnePassTheTextItselfIsTheNewest) {
  RecyclingDrafter drafter({});
  Told text(drafter, 1, {5});
  text.say({6}, 6);
  text.say({5}, 5);
  // 5 is the root and also a rejected node.
  ASSERT_THAT(text.draft_chain(2), ElementsAre(Tokens{6}, Tokens{6, 5}));
  text.judge({{1}, {5}, {3}}, {}, 5);
  EXPECT_THAT(text.draft_chain(1), ElementsAre(Tokens{1}));
  // And now an accepted node.
  text.say({6}, 5);
  ASSERT_THAT(text.draft_chain(2), ElementsAre(Tokens{6}, Tokens{6, 5}));
  text.judge({{6}, {5}, {3}}, {1, 2}, 5);
  EXPECT_THAT(text.draft_chain(1), ElementsAre(Tokens{3}));
}

TEST(RecyclingDrafter, CandidatesAreFoundAfterBias) {
  RecyclingDrafter drafter({.n_candidates = 2});
  Told text(drafter, 1, {5}, {.temperature = 0, .logit_bias = {{8, 5.0F}}});
  text.say({6, 7, 8}, 5);
  EXPECT_THAT(text.draft_widths({2}), ElementsAre(Tokens{8}, Tokens{6}));
}

// A grammar allows no token after a node that it forbids; that says nothing about the node's token.
TEST(RecyclingDrafter, ANodeBehindWhichNothingMayStandWritesNoRow) {
  RecyclingDrafter drafter({});
  Told text(drafter, 1, {5});
  text.say({6}, 5);
  text.say({}, 5);
  EXPECT_THAT(text.draft_chain(1), ElementsAre(Tokens{6}));
}

TEST(RecyclingDrafter, PenaltiesCountTheTextOnceAndAPathThatDidNotStand) {
  RecyclingDrafter drafter({});
  Told text(drafter, 1, {5}, {.temperature = 0, .frequency_penalty = 1.2});
  text.say({6}, 6);
  text.say({7}, 5);
  ASSERT_THAT(text.draft_chain(2), ElementsAre(Tokens{6}, Tokens{6, 7}));
  // 6 is accepted and now occurs twice in the text: a penalty of 2.4, after itself and after 7.
  // After 7, which is rejected, 7 counts once.
  text.judge({{6}, {6, 1, 2, 3}, {6, 7, 2, 3}}, {1}, 8);
  text.say({7}, 7);
  EXPECT_THAT(text.draft_widths({4}), ElementsAre(Tokens{2}, Tokens{7}, Tokens{6}, Tokens{3}));
  text.say({6}, 6);
  EXPECT_THAT(text.draft_widths({4}), ElementsAre(Tokens{1}, Tokens{2}, Tokens{6}, Tokens{3}));
}

TEST(RecyclingDrafter, RowsAreBounded) {
  for (const int rows : {2, 3}) {
    RecyclingDrafter drafter({.rows = rows});
    Told text(drafter, 1, {1});
    text.say({2}, 2);
    text.say({3}, 3);
    text.say({4}, 1);
    if (rows == 2) {
      EXPECT_THAT(text.draft_chain(1), IsEmpty());
    } else {
      EXPECT_THAT(text.draft_chain(3), ElementsAre(Tokens{2}, Tokens{2, 3}, Tokens{2, 3, 4}));
    }
  }
}

TEST(RecyclingDrafter, ATextKnowsItsOwnRowsAlone) {
  RecyclingDrafter drafter({});
  Told first(drafter, 1, {5});
  Told second(drafter, 2, {5});
  first.say({6}, 5);
  EXPECT_THAT(first.draft_chain(1), ElementsAre(Tokens{6}));
  EXPECT_THAT(second.draft_chain(1), IsEmpty());
  first.end();
  EXPECT_THAT(second.draft_chain(1), IsEmpty());
  EXPECT_EQ(drafter.n_remembered(), 0);
  Told third(drafter, 1, {5});
  EXPECT_THAT(third.draft_chain(1), IsEmpty());
}

TEST(RecyclingDrafter, RemembersEndedTextsWhereAskedTo) {
  RecyclingDrafter drafter({.across = 2});
  Told first(drafter, 1, {5});
  first.say({6}, 6);
  first.say({7}, 7);
  Told second(drafter, 2, {5});
  EXPECT_THAT(second.draft_chain(2), IsEmpty());  // not ended yet
  first.end();
  EXPECT_EQ(drafter.n_remembered(), 2);
  EXPECT_THAT(second.draft_chain(2), ElementsAre(Tokens{6}, Tokens{6, 7}));
  // A row of the text's own precedes a remembered one.
  second.say({8, 6}, 5);
  EXPECT_THAT(second.draft_widths({2, 1}), ElementsAre(Tokens{8}, Tokens{6}, Tokens{6, 7}));
  second.say({9}, 9);
  second.say({10}, 10);
  second.end();
  EXPECT_EQ(drafter.n_remembered(), 2);
  Told third(drafter, 3, {6});
  EXPECT_THAT(third.draft_chain(1), IsEmpty());  // two newer rows have replaced it
  Told fourth(drafter, 4, {9});
  EXPECT_THAT(fourth.draft_chain(1), ElementsAre(Tokens{10}));
}

// After 5: 6 with 0.73, 7 with 0.27; after 6: 8 alone.
void tell_shares(Told& text) {
  text.say({6, 7}, 6);
  text.say({8}, 5);
}

TEST(RecyclingDrafter, ADynamicShapeGoesByShares) {
  RecyclingDrafter drafter({});
  Told text(drafter, 1, {5});
  tell_shares(text);
  EXPECT_THAT(text.draft(DynamicShape({.total = 2, .depth = 2, .top_k = 2})),
              ElementsAre(Tokens{6}, Tokens{6, 8}));
  EXPECT_THAT(text.draft(DynamicShape({.total = 3, .depth = 2, .top_k = 2})),
              ElementsAre(Tokens{6}, Tokens{7}, Tokens{6, 8}));
}

TEST(RecyclingDrafter, DraftsWhatPaysByShares) {
  RecyclingDrafter drafter({});
  Told text(drafter, 1, {5});
  tell_shares(text);
  const double share = 1 / (1 + std::exp(-1.0));
  constexpr double kFloat = 1e-6;  // shares are stored in single precision
  const FixedShape shape(recycling_tree(), Siblings::top_ranks);
  ListedWorth half({0.5});
  EXPECT_THAT(text.draft(shape, &half), ElementsAre(Tokens{6}, Tokens{6, 8}));
  EXPECT_THAT(half.of_drafted, ElementsAre(DoubleNear(share, kFloat), DoubleNear(1, kFloat)));
  ASSERT_EQ(half.of_refused.size(), 1U);
  EXPECT_EQ(half.of_refused[0].parent, 0);
  EXPECT_EQ(half.of_refused[0].token, 7);
  EXPECT_NEAR(half.of_refused[0].certainty, 1 - share, kFloat);
  ListedWorth little({0.1});
  EXPECT_THAT(text.draft(shape, &little), ElementsAre(Tokens{6}, Tokens{6, 8}, Tokens{7}));
  EXPECT_THAT(little.of_refused, IsEmpty());
  ListedWorth dear({0.9});
  EXPECT_THAT(text.draft(shape, &dear), IsEmpty());
  ASSERT_EQ(dear.of_refused.size(), 1U);
  EXPECT_EQ(dear.of_refused[0].token, 6);
  // The shape's limits apply.
  ListedWorth nothing({0.0});
  EXPECT_THAT(text.draft(*chain_shape(1), &nothing), ElementsAre(Tokens{6}));
  EXPECT_THAT(text.draft(*chain_shape(3), &nothing), ElementsAre(Tokens{6}, Tokens{6, 8}));
}

// --- The spec --------------------------------------------------------------------------------

// Every token has the eight that follow it as candidates, so the tree is full.
TEST(RecyclingSpec, TheTreeIsThePapers) {
  RecyclingDrafter drafter({});
  Told text(drafter, 1, {0});
  for (TokenId token = 0; token < kVocabulary; ++token) {
    Tokens next;
    for (int rank = 1; rank <= 8; ++rank) next.push_back((token + rank) % kVocabulary);
    text.say(next, next.front());
  }
  const DrafterPlan plan = read_drafter("recycling");
  std::vector<int> in_level(7, 0);
  for (const Tokens& path : text.draft(*plan.shape)) ++in_level.at(path.size());
  EXPECT_THAT(in_level, ElementsAre(0, 8, 21, 25, 15, 8, 3));
}

TEST(RecyclingSpec, ReadsItsKeys) {
  const DrafterPlan plan = read_drafter("recycling:k=4,rows=100,across=50");
  EXPECT_EQ(plan.shape->n_nodes(), 80);
  EXPECT_EQ(plan.shape->depth(), 6);
  EXPECT_EQ(plan.shape->siblings(), Siblings::top_ranks);
  EXPECT_FALSE(plan.traits.has_draft_prob);
  EXPECT_EQ(plan.make({})->name(), "recycling");
  for (const char* wrong : {"recycling:8", "recycling:k=0", "recycling:k=65", "recycling:rows=0",
                            "recycling:across=-1", "recycling:width=3"}) {
    EXPECT_THROW(read_drafter(wrong), UsageError) << wrong;
  }
}

// --- The distribution ------------------------------------------------------------------------

// Every token of the small vocabulary soon has a row, so most rounds draft.
TEST(RecyclingExactness, TheDistributionIsTheTargets) {
  const auto rule = std::make_shared<ExactRule>();
  const auto tree = std::make_shared<FixedShape>(widths_tree(std::vector<int>{2, 1}));
  std::int64_t n_drafted = 0;
  for (const auto& acceptance :
       {make_multi_round(rule), make_traversal(rule), make_coupled(rule), make_block(rule)}) {
    for (std::uint32_t seed = 1; seed <= 3; ++seed) {
      for (const double temperature : {0.0, 0.6}) {
        test::TableModel target(3, seed);
        RecyclingDrafter recycling({.n_candidates = 2});
        test::CheckedDrafter drafter(recycling, 3);
        const test::Trial trial{.target = &target,
                                .drafter = &drafter,
                                .acceptance = acceptance.get(),
                                .shape = acceptance->chains_only() ? chain_shape(2) : tree,
                                .sampling = {.temperature = temperature},
                                .prompt = {0, 1, 2, 1},
                                .n_tokens = 5};
        const test::Enumerated enumerated = test::enumerate(trial);
        EXPECT_NEAR(enumerated.weight, 1.0, test::kExact);
        EXPECT_LT(test::distance(enumerated.dist, test::target_distribution(trial)), test::kExact)
            << acceptance->name() << " " << seed << " " << temperature;
        EXPECT_EQ(drafter.violation(), "");
        n_drafted += drafter.n_drafted();
      }
    }
  }
  EXPECT_GT(n_drafted, 1000);
}

}  // namespace
}  // namespace outrider
