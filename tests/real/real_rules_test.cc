// SPDX-License-Identifier: Apache-2.0
// Rules on real weights: stories260K is the target, weak260K the drafter. A rule is run twice over
// the same prompt: position by position (nothing drafted: each token drawn from rule_prob, both
// models run for each) and speculatively. The first tokens must have the same distribution
// (chi-square test of two samples), and speculation must take fewer passes of the target.
//
// All noise is seeded: the tests either always pass or always fail. A p-value of 1e-5 for each of
// eight comparisons bounds the chance of bad seeds for a correct build by 1e-4.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/drafting/make_tree_shape.h"
#include "model/load_model.h"
#include "outrider/tokenizer.h"
#include "sampling/counter_chance.h"
#include "speculate/decoder.h"
#include "speculate/drafters/model_drafter.h"
#include "speculate/rules/make_rule.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/statistics.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr double kLevel = 1e-5;
constexpr int kTexts = 3000;
constexpr int kTokens =
    4;  // Tokens of each text. Pairs of the first two and of the last two are counted.

struct Sample {
  std::map<std::pair<TokenId, TokenId>, double> first, last;
  double target_passes = 0;
  double tokens = 0;
  double deferral = 0;
};

class RulesOnRealPair : public ::testing::Test {
 protected:
  void SetUp() override {
    const fs::path models = fs::path(OUTRIDER_SHARED_DATA) / "models";
    if (!fs::exists(models / "stories260K" / "config.json")) {
      GTEST_SKIP() << "no shared data folder";
    }
    target_ = load_model(models / "stories260K", {.n_threads = 1});
    drafter_ = std::make_unique<ModelDrafter>(load_model(models / "weak260K", {.n_threads = 1}),
                                              target_->config().vocabulary_size);
    prompt_ = Tokenizer::load(models / "stories260K")->encode("One day, Lily and her", true);
  }

  // Speculative in the shape of a spec, or without drafts for "".
  Sample sample(const std::string& rule, const std::string& verify, const std::string& tree,
                std::uint64_t first_seed) {
    const Verification verification = make_verification(rule, verify);
    Decoder decoder(*target_, drafter_.get(), *verification.acceptance,
                    tree.empty() ? chain_shape(0) : make_tree_shape(tree), nullptr);
    const Transform transform({.temperature = 0.9, .top_k = 40}, target_->config().vocabulary_size);
    Sample result;
    for (int text = 0; text < kTexts; ++text) {
      CounterChance chance(first_seed + static_cast<std::uint64_t>(text));
      Stream stream(text, prompt_, transform, chance);
      stream.max_total = stream.n_prompt + kTokens;
      decoder.begin(stream);
      Stream* const streams[] = {&stream};
      while (!stream.finished) {
        decoder.round(streams, [](Stream&, const Committed&) { return false; });
      }
      decoder.end(stream);
      const TokenId* emitted = stream.tokens.data() + stream.n_prompt;
      result.first[{emitted[0], emitted[1]}] += 1;
      result.last[{emitted[2], emitted[3]}] += 1;
      result.target_passes += static_cast<double>(stream.counts.target_passes);
      result.deferral += stream.counts.rule_cost.deferral;
      result.tokens += kTokens;
    }
    return result;
  }

  std::unique_ptr<LanguageModel> target_;
  std::unique_ptr<ModelDrafter> drafter_;
  std::vector<TokenId> prompt_;
};

test::ChiSquare compare(const std::map<std::pair<TokenId, TokenId>, double>& a,
                        const std::map<std::pair<TokenId, TokenId>, double>& b) {
  std::map<std::pair<TokenId, TokenId>, std::pair<double, double>> both;
  for (const auto& [tokens, count] : a) both[tokens].first = count;
  for (const auto& [tokens, count] : b) both[tokens].second = count;
  std::vector<double> in_a;
  std::vector<double> in_b;
  for (const auto& [tokens, counts] : both) {
    in_a.push_back(counts.first);
    in_b.push_back(counts.second);
  }
  return test::chi_square_two_samples(in_a, in_b);
}

TEST_F(RulesOnRealPair, SequentialAndSpeculativeTextsHaveOneDistribution) {
  struct Case {
    const char* rule;
    const char* verify;
    const char* tree;
  };
  for (const Case& test : {Case{"diff:alpha=0.1", "exact", "chain:length=3"},
                           Case{"token-v3:alpha=0.6", "block", "chain:length=3"},
                           Case{"lossy:alpha=0.4", "traversal", "widths:2,2"},
                           Case{"budget:total=0.8", "exact", "widths:3,1"}}) {
    const Sample sequential = sample(test.rule, "exact", "", 1);
    const Sample speculative = sample(test.rule, test.verify, test.tree, 1'000'000);
    for (const auto& result : {compare(sequential.first, speculative.first),
                               compare(sequential.last, speculative.last)}) {
      EXPECT_GT(result.tail, kLevel)
          << test.rule << ": " << result.statistic << " with " << result.degrees << " degrees";
      EXPECT_GE(result.degrees, 10);
    }
    // Position by position, every token takes a pass.
    EXPECT_EQ(sequential.target_passes, sequential.tokens);
    EXPECT_LT(speculative.target_passes, 0.75 * sequential.target_passes) << test.rule;
    EXPECT_NEAR(speculative.deferral / speculative.tokens, sequential.deferral / sequential.tokens,
                0.03);  // Five standard errors of a mean of 12,000 numbers in [0, 1] are 0.023.
  }
}

// The test distinguishes two different rules.
TEST_F(RulesOnRealPair, AnotherRuleHasAnotherDistribution) {
  const Sample diff = sample("diff:alpha=0.1", "exact", "", 1);
  const Sample exact = sample("exact", "exact", "chain:length=3", 1'000'000);
  EXPECT_LT(compare(diff.first, exact.first).tail, kLevel);
}

}  // namespace
}  // namespace outrider
