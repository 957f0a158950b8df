// SPDX-License-Identifier: Apache-2.0
// Lookahead decoding's parts: the window as a tree, the pool and the spec; and the output's
// distribution, by enumeration. tests/real/self_drafting_test.cc compares its rounds with the
// paper's on real weights.
#include "speculate/drafters/target/lookahead_drafter.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "outrider/error.h"
#include "speculate/registry/drafter_registry.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "speculate/tree_shapes/open_shape.h"
#include "tests/support/proofs/enumerated_process.h"
#include "tests/support/proofs/exactness.h"

namespace outrider {
namespace {

using Tokens = std::vector<TokenId>;

Tokens path_to(const DraftTree& tree, int node) {
  Tokens path;
  tree.path_tokens(node, path);
  return path;
}

// Four columns and three levels: 1x, 2x and 3x, column by column.
TEST(JacobiWindow, EachRowSeesLevelZeroUpToItsColumnAndItsOwnColumn) {
  JacobiWindow window({.width = 4, .ngram = 4});
  const auto ignore = [](TokenId, std::span<const TokenId>) { FAIL(); };
  ASSERT_EQ(window.columns(), 6);
  window.start(Tokens{99, 99, 99, 11, 12, 13});
  std::vector<int> newest;
  DraftTree tree;

  tree.reset(5, 1);
  EXPECT_EQ(window.n_nodes(), 5);
  EXPECT_EQ(window.depth(), 5);
  window.add_to(tree, newest);
  ASSERT_EQ(newest.size(), 6U);
  EXPECT_EQ(newest[0], 0);
  EXPECT_EQ(path_to(tree, newest[5]), (Tokens{99, 99, 11, 12, 13}));
  window.advance(Tokens{99, 99, 20, 21, 22, 23}, ignore);

  tree.reset(6, 2);
  EXPECT_EQ(window.n_nodes(), 9);
  window.add_to(tree, newest);
  ASSERT_EQ(newest.size(), 5U);
  EXPECT_EQ(path_to(tree, newest[0]), (Tokens{99}));
  EXPECT_EQ(path_to(tree, newest[4]), (Tokens{99, 11, 12, 13, 23}));
  EXPECT_FALSE(window.full());
  window.advance(Tokens{99, 30, 31, 32, 33}, ignore);

  ASSERT_TRUE(window.full());
  tree.reset(10, 3);
  tree.add_child(0, 77, kPointMass);
  window.add_to(tree, newest);
  EXPECT_EQ(window.n_nodes(), 11);
  EXPECT_EQ(tree.n_scratch(), 11);
  EXPECT_EQ(window.depth(), 5);
  ASSERT_EQ(newest.size(), 4U);
  EXPECT_EQ(path_to(tree, newest[0]), (Tokens{20, 30}));
  EXPECT_EQ(path_to(tree, newest[1]), (Tokens{11, 21, 31}));
  EXPECT_EQ(path_to(tree, newest[3]), (Tokens{11, 12, 13, 23, 33}));

  std::vector<Tokens> ngrams;
  window.advance(Tokens{40, 41, 42, 43}, [&](TokenId first, std::span<const TokenId> others) {
    ngrams.push_back({first});
    ngrams.back().insert(ngrams.back().end(), others.begin(), others.end());
  });
  EXPECT_EQ(ngrams, (std::vector<Tokens>{
                        {10, 20, 30, 40}, {11, 21, 31, 41}, {12, 22, 32, 42}, {13, 23, 33, 43}}));
  tree.reset(7, 4);
  window.add_to(tree, newest);
  EXPECT_EQ(path_to(tree, newest[2]), (Tokens{21, 22, 32, 42}));
}

TEST(JacobiWindow, MostNodes) {
  EXPECT_EQ(JacobiWindow::max_nodes({.width = 4, .ngram = 4}), 11);
  EXPECT_EQ(JacobiWindow::max_nodes({.width = 15, .ngram = 5}), 59);
  EXPECT_EQ(JacobiWindow::max_nodes({.width = 3, .ngram = 2}), 2);
  // A narrow window is largest while it fills: 2 levels of 3 columns, then 3 of 2, then 4 of 1.
  EXPECT_EQ(JacobiWindow::max_nodes({.width = 1, .ngram = 5}), 5);
}

TEST(NgramPool, ForgetsWhatWasNotSeenForTheLongest) {
  NgramPool pool(2);
  EXPECT_TRUE(pool.guesses(1).empty());
  pool.see(1, Tokens{2, 3});
  pool.see(1, Tokens{4, 5});
  pool.see(9, Tokens{6, 7});
  pool.see(1, Tokens{2, 3});
  pool.see(1, Tokens{6, 7});
  const auto guesses = pool.guesses(1);
  EXPECT_EQ(std::vector<Tokens>(guesses.begin(), guesses.end()),
            (std::vector<Tokens>{{2, 3}, {6, 7}}));
  EXPECT_EQ(pool.guesses(9).size(), 1U);
}

DrafterPlan read(const std::string& spec) { return read_drafter(spec); }

TEST(LookaheadSpec, ReadsSizesThatFitAPass) {
  EXPECT_EQ(read("lookahead").shape->depth(), 4);
  EXPECT_EQ(read("lookahead").shape->n_nodes(), 28);
  EXPECT_FALSE(read("lookahead").shape->is_chain());
  EXPECT_TRUE(read("lookahead:guesses=1").shape->is_chain());
  EXPECT_EQ(read("lookahead:window=15,ngram=5,guesses=15").shape->n_nodes(), 60);
  EXPECT_FALSE(read("lookahead").traits.has_draft_prob);
  for (const char* wrong :
       {"lookahead:7", "lookahead:width=7", "lookahead:window=0", "lookahead:ngram=1",
        "lookahead:guesses=0", "lookahead:window=40,ngram=8,guesses=1", "lookahead:guesses=64"}) {
    EXPECT_THROW(read(wrong), UsageError) << wrong;
  }
}

// A drafter that counts its drafted tokens.
class Counting final : public Drafter {
 public:
  explicit Counting(Drafter& drafter) : drafter_(&drafter) {}
  std::string_view name() const override { return drafter_->name(); }
  DrafterTraits traits() const override { return drafter_->traits(); }
  void begin(const Context& context) override { drafter_->begin(context); }
  void propose(std::span<DraftJob> jobs) override {
    drafter_->propose(jobs);
    for (const DraftJob& job : jobs) n_drafted += job.tree->n_drafted();
  }
  void observe(std::span<const RoundResult> results) override { drafter_->observe(results); }
  void end(SequenceId id) override { drafter_->end(id); }
  std::int64_t n_passes() const override { return drafter_->n_passes(); }

  int n_drafted = 0;

 private:
  Drafter* drafter_;
};

// Guesses are point masses, and the window's nodes are not judged. Drafting begins in the third
// round.
TEST(LookaheadExactness, TheDistributionIsTheTargets) {
  const auto rule = std::make_shared<ExactRule>();
  int n_drafted = 0;
  for (const auto& acceptance :
       {make_multi_round(rule), make_traversal(rule), make_coupled(rule), make_block(rule)}) {
    const LookaheadDrafter::Options options{.window = {.width = 3, .ngram = 3},
                                            .n_guesses = acceptance->chains_only() ? 1 : 2};
    for (std::uint32_t seed = 1; seed <= 3; ++seed) {
      for (const double temperature : {0.0, 0.6}) {
        test::TableModel target(3, seed);
        LookaheadDrafter lookahead(options, {2});
        Counting drafter(lookahead);
        const test::Trial trial{.target = &target,
                                .drafter = &drafter,
                                .acceptance = acceptance.get(),
                                .shape = acceptance->chains_only()
                                             ? chain_shape(2)
                                             : std::make_shared<const OpenShape>(2, 4),
                                .sampling = {.temperature = temperature},
                                .prompt = {0, 1, 2, 1},
                                .n_tokens = 6};
        const test::Enumerated enumerated = test::enumerate(trial);
        EXPECT_NEAR(enumerated.weight, 1.0, test::kExact);
        EXPECT_LT(test::distance(enumerated.dist, test::target_distribution(trial)), test::kExact)
            << acceptance->name() << " " << seed << " " << temperature;
        n_drafted += drafter.n_drafted;
      }
    }
  }
  EXPECT_GT(n_drafted, 1000);
}

}  // namespace
}  // namespace outrider
