// SPDX-License-Identifier: Apache-2.0
// Compares methods on the tiny pair: counts are consistent, texts equal plain decoding's where they
// must, and a run continues where it stopped. Times mean nothing here.
#include "outrider/compare_methods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "outrider/error.h"
#include "outrider/method_report.h"
#include "tests/support/models/tiny_heads.h"
#include "tests/support/models/tiny_pair.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using ::testing::HasSubstr;

ComparedPrompt prompt(const std::string& id, std::vector<std::string> turns) {
  return {.set = "set", .id = id, .category = "c", .topic = "c", .turns = std::move(turns)};
}

class CompareMethods : public ::testing::Test {
 protected:
  void SetUp() override {
    test::write_tiny_pair(folder_.path());
    model_ = Model::load(folder_.path() / "target", {.threads = 1});
    const std::string draft = "model:" + (folder_.path() / "draft").string();
    options_.methods =
        read_methods(draft + "@chain:length=3," + draft + ",suffix@widths:2", {.threads = 1});
    options_.prompts = {prompt("1", {"once upon"}), prompt("2", {"a b c", "and then"}),
                        prompt("3", {"the end"})};
    options_.max_tokens = 12;
  }

  test::TemporaryDirectory folder_;
  std::shared_ptr<const Model> model_;
  CompareOptions options_;
};

TEST_F(CompareMethods, CountsAllThatHappensInEveryRound) {
  options_.temperatures = {0, 1};
  options_.repeats = 2;
  const std::vector<ComparedRound> rounds = compare_methods(model_, options_);
  ASSERT_EQ(rounds.size(), 12U);
  std::set<std::tuple<std::size_t, double, int>> different;
  std::int64_t n_accepted = 0;
  for (const ComparedRound& round : rounds) {
    different.emplace(round.prompt, round.temperature, round.repeat);
    ASSERT_EQ(round.samples.size(), 4U) << round.problem;
    for (std::size_t method = 0; method < 4; ++method) {
      const MethodSample& sample = round.samples[method];
      std::int64_t n_rounds = 0;
      std::int64_t n_nodes = 0;
      for (const DraftOutcome& outcome : sample.outcomes) {
        n_rounds += outcome.n;
        n_nodes += outcome.n * outcome.nodes;
        n_accepted += outcome.n * outcome.accepted;
        EXPECT_LE(outcome.accepted, outcome.levels);
        EXPECT_LE(outcome.levels, outcome.nodes);
        EXPECT_LE(outcome.levels, method == 1 ? 3 : 256);
      }
      EXPECT_EQ(n_rounds, sample.target_passes);
      EXPECT_EQ(n_nodes, sample.drafted);
      const std::size_t n_turns = options_.prompts[round.prompt].turns.size();
      EXPECT_GT(sample.emitted, 0);
      EXPECT_LE(sample.emitted, static_cast<std::int64_t>(12 * n_turns));
      EXPECT_GT(sample.first_token_seconds, 0);
      EXPECT_LE(sample.first_token_seconds, sample.request_seconds);
      EXPECT_LE(sample.draft_seconds + sample.target_seconds + sample.verify_seconds,
                sample.decode_seconds);
      EXPECT_GT(sample.target_seconds, 0);
      if (!promises_same_text(options_.methods[method], round.temperature)) continue;
      EXPECT_EQ(sample.first_difference, -1) << method << " " << round.temperature;
      EXPECT_EQ(sample.ids_digest, round.samples[0].ids_digest);
      EXPECT_EQ(sample.prompt_tokens, round.samples[0].prompt_tokens);
    }
    EXPECT_EQ(round.samples[0].emitted, round.samples[0].target_passes);
  }
  EXPECT_EQ(different.size(), 12U);
  EXPECT_GT(n_accepted, 0);
  // A repeat does the same work.
  EXPECT_EQ(rounds[0].samples[0].ids_digest, rounds[6].samples[0].ids_digest);
}

TEST_F(CompareMethods, GoesOnWhereAnEarlierRunWas) {
  const std::vector<ComparedRound> all = compare_methods(model_, options_);
  options_.is_known = [](std::size_t index, double, int) { return index != 1; };
  const std::vector<ComparedRound> rest = compare_methods(model_, options_);
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_EQ(rest[0].prompt, 1U);
  EXPECT_EQ(rest[0].samples[0].ids_digest, all[1].samples[0].ids_digest);
  // Nothing is loaded if nothing is to be measured.
  options_.is_known = [](std::size_t, double, int) { return true; };
  options_.methods = read_methods("model:nowhere");
  EXPECT_TRUE(compare_methods(model_, options_).empty());
}

TEST_F(CompareMethods, EndsBetweenRoundsWhenCancelled) {
  std::atomic<bool> cancel = false;
  options_.cancel = &cancel;
  int n_rounds = 0;
  options_.on_round = [&](const ComparedRound&) { cancel = ++n_rounds == 2; };
  EXPECT_EQ(compare_methods(model_, options_).size(), 2U);
  EXPECT_EQ(n_rounds, 2);
}

TEST_F(CompareMethods, SaysWhichPromptDoesNotFit) {
  options_.prompts = {prompt("long", {std::string(20'000, 'x')}), prompt("short", {"a"})};
  const std::vector<ComparedRound> rounds = compare_methods(model_, options_);
  ASSERT_EQ(rounds.size(), 2U);
  EXPECT_TRUE(rounds[0].samples.empty());
  EXPECT_THAT(rounds[0].problem, HasSubstr("tokens in a context of"));
  EXPECT_EQ(rounds[1].samples.size(), 4U);
}

TEST_F(CompareMethods, TellsPlacesOfAHeadsChainsApart) {
  const test::TinyShape shape;
  const std::filesystem::path target = folder_.path() / "of_head";
  const std::string head = (folder_.path() / "head").string();
  test::write_hugging_face(test::make_tiny_model(shape), target);
  test::write_eagle_head(shape, head, /*inputs=*/{}, /*own_embedding=*/true);
  MethodComparison comparison;
  comparison.options = options_;
  comparison.options.methods =
      read_methods("eagle:" + head + "@chain:length=4,eagle:" + head + "@static:eagle1");
  comparison.rounds = compare_methods(Model::load(target, {.threads = 1}), comparison.options);
  for (const MethodFigures& figures : method_figures(comparison)) {
    EXPECT_EQ(figures.n_same, figures.n_prompts);
    if (figures.method == 0) continue;
    EXPECT_EQ(figures.has_alphas, figures.method == 1);
    ASSERT_GE(figures.places.size(), 4U);
    EXPECT_GT(figures.places[0].n_reached, 0);
    for (std::size_t place = 1; place < figures.places.size(); ++place) {
      EXPECT_LE(figures.places[place].n_reached, figures.places[place - 1].n_stood);
    }
  }
}

TEST_F(CompareMethods, MeasuresPassesInTheMiddleOfAnAnswer) {
  const int context = typical_context(*model_, options_);
  EXPECT_GT(context, options_.max_tokens / 2);
  EXPECT_LT(context, 50);
}

TEST_F(CompareMethods, DescribesWhatIsCompared) {
  const MethodComparison comparison = describe_comparison(*model_, options_, "1.2.3");
  ASSERT_EQ(comparison.files.size(), 2U);
  EXPECT_EQ(comparison.files[0].path, (folder_.path() / "target").string());
  EXPECT_EQ(comparison.files[1].path, (folder_.path() / "draft").string());
  for (const ModelFile& file : comparison.files) EXPECT_GT(file.bytes, 1000U);
  EXPECT_GT(comparison.machine.n_processors, 0);
  EXPECT_GT(comparison.machine.memory_bytes, 0U);
  EXPECT_FALSE(comparison.is_chat);
  EXPECT_FALSE(comparison.is_complete());
}

TEST_F(CompareMethods, RefusesWhatCannotBeMeant) {
  const auto problem_of = [](const CompareOptions& options) -> std::string {
    try {
      check_comparison(options);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "none";
  };
  const auto with = [this](auto change) {
    CompareOptions options = options_;
    change(options);
    return options;
  };
  EXPECT_EQ(problem_of(options_), "none");
  EXPECT_THAT(problem_of(with([](auto& o) { o.methods.resize(1); })), HasSubstr("beside plain"));
  EXPECT_THAT(problem_of(with([](auto& o) { o.methods.erase(o.methods.begin()); })),
              HasSubstr("plain decoding first"));
  EXPECT_THAT(problem_of(with([](auto& o) { o.methods.clear(); })), HasSubstr("methods"));
  EXPECT_THAT(problem_of(with([](auto& o) { o.prompts.clear(); })), HasSubstr("prompts"));
  EXPECT_THAT(problem_of(with([](auto& o) { o.temperatures.clear(); })), HasSubstr("temperatures"));
  EXPECT_THAT(problem_of(with([](auto& o) { o.temperatures = {0, 0}; })), HasSubstr("0 twice"));
  EXPECT_THAT(problem_of(with([](auto& o) { o.temperatures = {-1}; })), HasSubstr("0 or more"));
  EXPECT_THAT(problem_of(with([](auto& o) { o.max_tokens = 1; })), HasSubstr("max_tokens"));
  EXPECT_THAT(problem_of(with([](auto& o) { o.repeats = 0; })), HasSubstr("repeats"));
}

}  // namespace
}  // namespace outrider
