// SPDX-License-Identifier: Apache-2.0
// Simulated acceptance on the tiny pair: the text is plain decoding's, the acceptance is as
// requested, and the drafter's passes are run. Times mean nothing here.
#include "measure/simulated_acceptance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "measure/simulated_drafter.h"
#include "outrider/error.h"
#include "outrider/measure.h"
#include "tests/support/models/tiny_pair.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

class SimulateAcceptance : public ::testing::Test {
 protected:
  void SetUp() override {
    test::write_tiny_pair(folder_.path());
    target_ = Model::load(folder_.path() / "target", {.threads = 1});
    drafter_ = {.drafter = "model:" + (folder_.path() / "draft").string(),
                .drafter_options = {.threads = 1}};
  }
  Simulation simulate(const SimulationOptions& options) const {
    return simulate_acceptance(*target_, drafter_, options);
  }

  test::TemporaryDirectory folder_;
  std::shared_ptr<const Model> target_;
  SpeculationOptions drafter_;
};

TEST_F(SimulateAcceptance, IsTheOneAskedForWithEveryPassRun) {
  const int n_tokens = 900;
  const double acceptance = 0.8;
  const Simulation simulation = simulate({.acceptance = acceptance,
                                          .trees = {"chain:length=1", "chain:length=4"},
                                          .max_tokens = n_tokens,
                                          .context = 3,
                                          .rounds = 2});
  ASSERT_EQ(simulation.trees.size(), 2U);
  EXPECT_GT(simulation.plain_seconds.min, 0);
  for (const SimulatedTree& tree : simulation.trees) {
    EXPECT_EQ(tree.emitted, n_tokens);
    // Every drafted token takes a pass of the drafter.
    EXPECT_EQ(tree.drafter_passes, tree.drafted);
    EXPECT_GT(tree.drafter_pass_seconds, 0);
    EXPECT_GT(tree.target_pass_seconds, 0);
    EXPECT_EQ(tree.speedup, simulation.plain_seconds.median / tree.seconds.median);
    // Judged tokens are accepted independently. Four standard deviations.
    const auto n_judged = static_cast<double>(tree.accepted + tree.rejected);
    EXPECT_NEAR(tree.judged_acceptance(), acceptance,
                4 * std::sqrt(acceptance * (1 - acceptance) / n_judged));
    EXPECT_LE(tree.acceptance_rate(), tree.judged_acceptance());
  }
  EXPECT_EQ(simulation.trees[0].tree, "chain:length=1");
  // The expected tokens per pass are (1 - a^(K + 1)) / (1 - a) (Leviathan et al. 2023, equation 1),
  // at most K + 1. A pass's number has a standard deviation below (K + 1) / 2; the tolerance is
  // four of the mean's.
  for (const int length : {1, 4}) {
    const SimulatedTree& tree = simulation.trees[length == 1 ? 0 : 1];
    const double expected = (1 - std::pow(acceptance, length + 1)) / (1 - acceptance);
    EXPECT_NEAR(tree.tau(), expected,
                4 * (length + 1) / 2.0 / std::sqrt(static_cast<double>(tree.target_passes)));
  }
}

TEST_F(SimulateAcceptance, TakesTheExtremes) {
  const Simulation right =
      simulate({.acceptance = 1, .trees = {"chain:length=3"}, .max_tokens = 41, .rounds = 1});
  EXPECT_EQ(right.trees[0].judged_acceptance(), 1);
  EXPECT_EQ(right.trees[0].target_passes, 11);  // ten passes of four tokens, and one for the last
  const Simulation wrong =
      simulate({.acceptance = 0, .trees = {"chain:length=3"}, .max_tokens = 41, .rounds = 1});
  EXPECT_EQ(wrong.trees[0].judged_acceptance(), 0);
  EXPECT_EQ(wrong.trees[0].tau(), 1);
}

TEST_F(SimulateAcceptance, DependsOnTheSeedAndNothingElse) {
  SimulationOptions options{.trees = {"chain:length=4"}, .max_tokens = 100, .rounds = 1};
  const auto accepted = [&] { return simulate(options).trees[0].accepted; };
  const std::int64_t first = accepted();
  EXPECT_EQ(accepted(), first);
  options.trees = {"chain:length=2", "chain:length=4"};
  EXPECT_EQ(simulate(options).trees[1].accepted, first);
  bool differs = false;
  for (options.seed = 1; options.seed < 5; ++options.seed) differs |= accepted() != first;
  EXPECT_TRUE(differs);
}

TEST_F(SimulateAcceptance, RefusesWhatCannotBeMeant) {
  struct Case {
    SimulationOptions options;
    const char* problem;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Case& bad :
       {Case{{.acceptance = -0.1}, "acceptance"}, Case{{.acceptance = 1.1}, "acceptance"},
        Case{{.acceptance = nan}, "acceptance"}, Case{{.trees = {}}, "trees"},
        Case{{.trees = {"widths:2,2"}}, "tree: expected a chain, got widths:2,2"},
        Case{{.trees = {"chair"}}, "chair"}, Case{{.max_tokens = 1}, "max_tokens"},
        Case{{.context = -1}, "context"}, Case{{.rounds = 0}, "rounds"}}) {
    EXPECT_THAT(error_of([&] { check_simulation(drafter_, bad.options); }), HasSubstr(bad.problem));
  }
  for (const char* spec : {"none", "ngram", "lookahead", "bicycle"}) {
    EXPECT_THAT(error_of([&] { check_simulation({.drafter = spec}, {}); }), HasSubstr(spec));
  }
  EXPECT_THAT(error_of([&] { simulate({.max_tokens = 1000, .context = 24, .rounds = 1}); }),
              HasSubstr("context of 1024, got 24 tokens"));
}

TEST_F(SimulateAcceptance, EndsWhereProgressThrows) {
  int n_calls = 0;
  const MeasureProgress stop = [&](std::string_view step, double) {
    // In the middle of a drafted text.
    if (step == "round 1 of 2, chain:length=5" && ++n_calls == 4) throw std::runtime_error("stop");
  };
  EXPECT_THROW(simulate({.max_tokens = 50, .rounds = 2, .progress = stop}), std::runtime_error);
  EXPECT_EQ(n_calls, 4);
}

TEST(RequirePlainText, SaysWhereTextsPart) {
  const std::vector<TokenId> plain = {5, 6, 7};
  EXPECT_NO_THROW(require_plain_text(plain, plain, "chain"));
  const auto problem = [&](const std::vector<TokenId>& ids) {
    return error_of([&] { require_plain_text(ids, plain, "chain:length=2"); });
  };
  EXPECT_THAT(problem({5, 8, 7}), HasSubstr("token 1 drafted by chain:length=2: expected plain "
                                            "decoding's id 6, got id 8"));
  EXPECT_THAT(problem({5, 6}), HasSubstr("id 7, got the end"));
  EXPECT_THAT(problem({5, 6, 7, 7}), HasSubstr("the end, got id 7"));
  EXPECT_THAT(error_of([&] {
                require_plain_text(std::vector<TokenId>{5, 8, 7}, plain, "");
              }),
              HasSubstr("token 1 without drafts: expected plain decoding's id 6, got id 8"));
}

// Drafts two tokens, as a chain or side by side.
class TwoTokens final : public Drafter {
 public:
  explicit TwoTokens(bool is_chain) : is_chain_(is_chain) {}
  std::string_view name() const override { return "two"; }
  DrafterTraits traits() const override { return {}; }
  void begin(const Context&) override {}
  void propose(std::span<DraftJob> jobs) override {
    for (const DraftJob& job : jobs) {
      job.tree->add_child(0, 1, kPointMass);
      job.tree->add_child(is_chain_ ? 1 : 0, 2, kPointMass);
    }
  }
  void observe(std::span<const RoundResult> results) override {
    for (const RoundResult& result : results) seen.push_back(result.tree->node(1).token);
  }
  void end(SequenceId) override {}
  std::int64_t n_passes() const override { return 0; }

  std::vector<TokenId> seen;

 private:
  bool is_chain_;
};

class SimulatedDraft : public ::testing::Test {
 protected:
  // Drafts after the first two tokens of the text.
  void propose(SimulatedDrafter& drafter) {
    drafter.begin(context_);
    tree_.reset(context_.tokens.back(), static_cast<std::int64_t>(context_.tokens.size()));
    DraftJob job;
    job.context = &context_;
    job.tree = &tree_;
    drafter.propose({&job, 1});
  }

  std::vector<TokenId> text_ = {10, 11, 12, 13};
  Context context_{.id = 7, .tokens = std::span<const TokenId>(text_).first(2)};
  DraftTree tree_;
};

TEST_F(SimulatedDraft, IsTheTextBeforeTheTargetSaysIt) {
  TwoTokens inner(true);
  SimulatedDrafter drafter(inner, text_, 20, 1, 0);
  propose(drafter);
  ASSERT_EQ(tree_.n_drafted(), 2);
  EXPECT_EQ(tree_.node(1).token, 12);
  EXPECT_EQ(tree_.node(2).token, 13);
  EXPECT_TRUE(tree_.is_chain());
  // The inner drafter is told about its own draft.
  const RoundResult result{.context = &context_, .tree = &tree_};
  drafter.observe({&result, 1});
  EXPECT_EQ(inner.seen, std::vector<TokenId>{1});
  drafter.end(7);
}

TEST_F(SimulatedDraft, IsSpoiledByPosition) {
  TwoTokens inner(true);
  const int n = 10000;
  SimulatedDrafter drafter(inner, std::vector<TokenId>(n, 19), 20, 0.8, 3);
  int n_right = 0;
  for (int position = 0; position < n; ++position) {
    const TokenId token = drafter.token_at(position);
    EXPECT_TRUE(token == 19 || token == 0);  // the vocabulary ends at 19
    EXPECT_EQ(token, drafter.token_at(position));
    n_right += token == 19 ? 1 : 0;
  }
  EXPECT_NEAR(n_right, 8000, 4 * std::sqrt(n * 0.8 * 0.2));
}

TEST_F(SimulatedDraft, RefusesTreesAndTextsThatEnd) {
  TwoTokens side_by_side(false);
  SimulatedDrafter of_tree(side_by_side, text_, 20, 1, 0);
  EXPECT_THAT(error_of([&] { propose(of_tree); }), HasSubstr("a tree by the drafter two"));
  TwoTokens chain(true);
  SimulatedDrafter beyond(chain, {10, 11, 12}, 20, 1, 0);
  EXPECT_THAT(error_of([&] { propose(beyond); }), HasSubstr("positions below 3, got 3"));
}

}  // namespace
}  // namespace outrider
