// SPDX-License-Identifier: Apache-2.0
#include "eval/frontiers/sequential_cascade.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/drafting/make_tree_shape.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "outrider/tokenizer.h"
#include "sampling/counter_chance.h"
#include "speculate/decoder.h"
#include "speculate/drafters/model_drafter.h"
#include "speculate/rules/make_rule.h"
#include "tests/support/proofs/exactness.h"
#include "tests/support/proofs/rule_process.h"
#include "tests/support/statistics.h"

namespace outrider::eval {
namespace {

namespace fs = std::filesystem;
using outrider::test::EnumeratingChance;
using outrider::test::kExact;
using outrider::test::TableModel;
using outrider::test::TextDistribution;
using ::testing::HasSubstr;

constexpr int kVocabulary = 3;
constexpr int kTokens = 3;
const std::vector<TokenId> kPrompt = {0, 2};

struct Outcome {
  TextDistribution dist;
  double target_passes = 0;
  double drafter_passes = 0;
  RuleCost cost;
};

// Every outcome of a cascade with its weight.
Outcome enumerate(TableModel& target, TableModel& drafter, const std::string& spec,
                  const SamplingParams& sampling) {
  SequentialCascade cascade(target, drafter, spec);
  const Transform transform(sampling, kVocabulary);
  Outcome outcome;
  EnumeratingChance chance;
  chance.for_each_path([&] {
    const SequentialText text = cascade.generate(
        {.prompt = kPrompt, .max_tokens = kTokens, .transform = &transform, .chance = &chance});
    outcome.dist[text.ids] += chance.weight();
    outcome.target_passes += chance.weight() * static_cast<double>(text.target_passes);
    outcome.drafter_passes += chance.weight() * static_cast<double>(text.drafter_passes);
    outcome.cost.kl += chance.weight() * text.cost.kl;
    outcome.cost.deferral += chance.weight() * text.cost.deferral;
  });
  return outcome;
}

test::RuleOutcome process_of(TableModel& target, TableModel& drafter, const Rule& rule,
                             const SamplingParams& sampling) {
  return test::rule_process(
      {.trial = {.target = &target, .sampling = sampling, .prompt = kPrompt, .n_tokens = kTokens},
       .draft_table = &drafter,
       .rule = &rule});
}

// Equals what the enumeration of speculation with the rule gives
// (engine/proofs/rule_exactness_test.cc).
TEST(SequentialCascade, FollowsTheRulesOwnProcess) {
  TableModel target(kVocabulary, 11);
  TableModel drafter(kVocabulary, 12);
  const std::pair<const char*, const char*> cases[] = {
      {"token:chow,alpha=0.5", "chow:alpha=0.5"},
      {"token:chow,alpha=0.9,loss=log", "chow:alpha=0.9,loss=log"},
      {"oracle:chow,alpha=0.5", "chow:alpha=0.5"},
      {"oracle:diff,alpha=0.1", "diff:alpha=0.1"},
      {"oracle:opt,alpha=0.3", "opt:alpha=0.3"},
      {"oracle:token-v3,alpha=0.6", "token-v3:alpha=0.6"},
      {"oracle:lossy,alpha=0.4,beta=auto", "lossy:alpha=0.4,beta=auto"},
      {"oracle:budget,total=0.5", "budget:total=0.5"},
      {"oracle:exact", "exact"}};
  for (const auto& [name, sampling] : test::transforms()) {
    for (const auto& [spec, rule] : cases) {
      const Outcome got = enumerate(target, drafter, spec, sampling);
      const auto expected = process_of(target, drafter, *make_rule(rule), sampling);
      EXPECT_LT(test::distance(got.dist, expected.dist), kExact) << spec << ", " << name;
      EXPECT_NEAR(got.cost.deferral, expected.cost.deferral, kExact) << spec << ", " << name;
      if (std::string(spec).starts_with("oracle")) {
        // Infinite if the target could not have emitted it.
        EXPECT_TRUE(got.cost.kl == expected.cost.kl ||
                    std::abs(got.cost.kl - expected.cost.kl) < kExact)
            << spec << ", " << name;
        EXPECT_NEAR(got.target_passes, kTokens, kExact);
      } else {
        // One pass per deferral, and none if the drafter is left alone.
        EXPECT_NEAR(got.target_passes, expected.cost.deferral, kExact) << spec << ", " << name;
        EXPECT_NEAR(got.drafter_passes, kTokens, kExact);
      }
    }
  }
}

// The drafter's distribution over whole texts, with the target's where the drafter was unsure of
// its text.
TEST(SequentialCascade, ASequenceIsWrittenAnewOrLeftAsItIs) {
  TableModel target(kVocabulary, 11);
  TableModel drafter(kVocabulary, 12);
  const SamplingParams sampling = {.temperature = 0.7};
  const TextDistribution of_target = process_of(target, drafter, ExactRule(), sampling).dist;
  const TextDistribution of_drafter = process_of(drafter, drafter, ExactRule(), sampling).dist;
  const Transform transform(sampling, kVocabulary);
  double smallest = 1;
  double largest = 0;
  for (const double alpha : {-0.1, 0.4, 0.5, 0.6, 1.0}) {
    TextDistribution expected;
    double deferred = 0;
    for (const auto& [tokens, prob] : of_drafter) {
      double log_prob = 0;
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        std::vector<TokenId> prefix = kPrompt;
        prefix.insert(prefix.end(), tokens.begin(),
                      tokens.begin() + static_cast<std::ptrdiff_t>(i));
        Distribution raw;
        transform.raw_distribution(drafter.logits(prefix), raw);
        log_prob += std::log(raw.prob(tokens[i]));
      }
      if (std::exp(log_prob / kTokens) < 1 - alpha) {
        deferred += prob;
      } else {
        expected[tokens] += prob;
      }
    }
    for (const auto& [tokens, prob] : of_target) expected[tokens] += deferred * prob;
    const Outcome got =
        enumerate(target, drafter, "sequence:chow,alpha=" + std::to_string(alpha), sampling);
    EXPECT_LT(test::distance(got.dist, expected), kExact) << alpha;
    EXPECT_NEAR(got.target_passes, deferred * kTokens, kExact);
    EXPECT_NEAR(got.cost.deferral, deferred * kTokens, kExact);
    EXPECT_NEAR(got.drafter_passes, kTokens, kExact);
    smallest = std::min(smallest, deferred);
    largest = std::max(largest, deferred);
  }
  EXPECT_EQ(smallest, 0);  // both ends were reached, and values between, see above
  EXPECT_NEAR(largest, 1, kExact);
}

TEST(SequentialCascade, EndsWhereItIsToldAndWhereTheContextDoes) {
  TableModel target(kVocabulary, 11, 7);
  TableModel drafter(kVocabulary, 12, 4);
  const Transform transform({.temperature = 1}, kVocabulary);
  CounterChance chance(5);
  SequentialJob job{
      .prompt = kPrompt, .max_tokens = 100, .transform = &transform, .chance = &chance};
  for (const char* spec : {"token:chow,alpha=1", "oracle:diff,alpha=1", "sequence:chow,alpha=1"}) {
    SequentialCascade cascade(target, drafter, spec);
    // The target continues when the drafter's context is full.
    const SequentialText text = cascade.generate(job);
    EXPECT_EQ(text.ids.size(), 5U) << spec;
    // Only a text that is rewritten reads its prompt a second time.
    EXPECT_EQ(text.second_prompt_seconds > 0, std::string_view(spec).starts_with("sequence"))
        << spec;
    EXPECT_GT(text.target_passes, 0) << spec;
    int n_texts = 0;
    SequentialJob ended = job;
    ended.ending = [&n_texts] {
      ++n_texts;
      return [n = 0](TokenId) mutable { return ++n == 2; };
    };
    EXPECT_EQ(cascade.generate(ended).ids.size(), 2U) << spec;
    EXPECT_EQ(n_texts, 1) << spec;
    SequentialJob cancelled = job;
    cancelled.cancelled = [] { return true; };
    EXPECT_TRUE(cascade.generate(cancelled).cancelled);
  }
}

TEST(SequentialCascade, RefusesWhatCannotBeMeant) {
  const auto problem = [](const std::string& spec) -> std::string {
    try {
      check_cascade(spec);
    } catch (const UsageError& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_EQ(problem("oracle:diff,alpha=0.3"), "");
  EXPECT_THAT(problem("speculative:diff"), HasSubstr("one of token, sequence, oracle"));
  EXPECT_THAT(problem("token"), HasSubstr("a rule"));
  EXPECT_THAT(problem("token:diff,alpha=0.3"), HasSubstr("chow"));
  EXPECT_THAT(problem("sequence:exact"), HasSubstr("chow"));
  EXPECT_THAT(problem("token:chow"), HasSubstr("alpha"));
  EXPECT_THAT(problem("token:chow,alpha=2"), HasSubstr("from -1 to 1"));
  EXPECT_THAT(problem("oracle:typical"), HasSubstr("one of exact"));
}

// ---- real weights: stories260K is the target, weak260K the drafter. All noise is seeded, so the
// tests either always pass or always fail.

class CascadesOnRealPair : public ::testing::Test {
 protected:
  using Pairs = std::map<std::pair<TokenId, TokenId>, double>;
  struct Sample {
    Pairs first, last;  // of four tokens
    double target_passes = 0;
    double tokens = 0;
    double deferral = 0;

    void add(std::span<const TokenId> ids, std::int64_t passes, const RuleCost& cost) {
      first[{ids[0], ids[1]}] += 1;
      last[{ids[ids.size() - 2], ids[ids.size() - 1]}] += 1;
      target_passes += static_cast<double>(passes);
      tokens += static_cast<double>(ids.size());
      deferral += cost.deferral;
    }
  };

  void SetUp() override {
    const fs::path models = fs::path(OUTRIDER_SHARED_DATA) / "models";
    if (!fs::exists(models / "stories260K" / "config.json")) {
      GTEST_SKIP() << "no shared data folder";
    }
    target_ = load_model(models / "stories260K", {.n_threads = 1});
    draft_model_ = load_model(models / "weak260K", {.n_threads = 1});
    drafter_ = std::make_unique<ModelDrafter>(load_model(models / "weak260K", {.n_threads = 1}),
                                              target_->config().vocabulary_size);
    prompt_ = Tokenizer::load(models / "stories260K")->encode("One day, Lily and her", true);
  }

  Sample sequential(const std::string& spec, int n_texts, int n_tokens) {
    SequentialCascade cascade(*target_, *draft_model_, spec);
    const Transform transform(kSampling, target_->config().vocabulary_size);
    Sample sample;
    for (int text = 0; text < n_texts; ++text) {
      CounterChance chance(static_cast<std::uint64_t>(text) + 1);
      const SequentialText written = cascade.generate(
          {.prompt = prompt_, .max_tokens = n_tokens, .transform = &transform, .chance = &chance});
      sample.add(written.ids, written.target_passes, written.cost);
    }
    return sample;
  }

  Sample speculative(const std::string& rule, int n_texts, int n_tokens) {
    const Verification verification = make_verification(rule, "exact");
    Decoder decoder(*target_, drafter_.get(), *verification.acceptance,
                    make_tree_shape("chain:length=3"), nullptr);
    const Transform transform(kSampling, target_->config().vocabulary_size);
    Sample sample;
    for (int text = 0; text < n_texts; ++text) {
      CounterChance chance(static_cast<std::uint64_t>(text) + 1'000'000);
      Stream stream(text, prompt_, transform, chance);
      stream.max_total = stream.n_prompt + n_tokens;
      decoder.begin(stream);
      Stream* const streams[] = {&stream};
      while (!stream.finished) {
        decoder.round(streams, [](Stream&, const Committed&) { return false; });
      }
      decoder.end(stream);
      sample.add(std::span(stream.tokens).subspan(static_cast<std::size_t>(stream.n_prompt)),
                 stream.counts.target_passes, stream.counts.rule_cost);
    }
    return sample;
  }

  static double tail(const Pairs& a, const Pairs& b) {
    std::map<std::pair<TokenId, TokenId>, std::pair<double, double>> both;
    for (const auto& [tokens, count] : a) both[tokens].first = count;
    for (const auto& [tokens, count] : b) both[tokens].second = count;
    std::vector<double> in_a;
    std::vector<double> in_b;
    for (const auto& [tokens, counts] : both) {
      in_a.push_back(counts.first);
      in_b.push_back(counts.second);
    }
    const auto result = test::chi_square_two_samples(in_a, in_b);
    EXPECT_GE(result.degrees, 10);
    return result.tail;
  }

  inline static const SamplingParams kSampling = {.temperature = 0.9, .top_k = 40};
  std::unique_ptr<LanguageModel> target_;
  std::unique_ptr<LanguageModel> draft_model_;
  std::unique_ptr<ModelDrafter> drafter_;
  std::vector<TokenId> prompt_;
};

// A p-value of 1e-5 for each of six comparisons limits the probability that a correct build had bad
// seeds to 1e-4.
constexpr double kLevel = 1e-5;

TEST_F(CascadesOnRealPair, WriteWhatSpeculationWithTheSameRuleDoes) {
  const std::pair<const char*, const char*> cases[] = {
      {"token:chow,alpha=0.6", "chow:alpha=0.6"},
      {"oracle:diff,alpha=0.1", "diff:alpha=0.1"},
      {"oracle:token-v3,alpha=0.6", "token-v3:alpha=0.6"}};
  for (const auto& [spec, rule] : cases) {
    const Sample one = sequential(spec, 3000, 4);
    const Sample other = speculative(rule, 3000, 4);
    EXPECT_GT(tail(one.first, other.first), kLevel) << spec;
    EXPECT_GT(tail(one.last, other.last), kLevel) << spec;
    // Five standard errors of a mean of 12,000 numbers in [0, 1]: 0.023.
    EXPECT_NEAR(one.deferral / one.tokens, other.deferral / other.tokens, 0.03) << spec;
  }
  // Another rule gives other results.
  EXPECT_LT(
      tail(sequential("oracle:diff,alpha=0.1", 3000, 4).first, speculative("exact", 3000, 4).first),
      kLevel);
}

TEST_F(CascadesOnRealPair, TakeMorePassesThanSpeculationDoes) {
  for (const char* parameters : {"alpha=0.1", "alpha=0.3"}) {
    const Sample oracle = sequential(std::string("oracle:diff,") + parameters, 60, 32);
    const Sample drafted = speculative(std::string("diff:") + parameters, 60, 32);
    EXPECT_EQ(oracle.target_passes, oracle.tokens);
    EXPECT_LT(drafted.target_passes, 0.6 * oracle.target_passes) << parameters;
  }
  // With Chow's rule alone each deferral costs a pass. Speculation takes fewer if more than one
  // token in tau is deferred.
  const Sample chow = sequential("token:chow,alpha=0.5", 60, 32);
  const Sample drafted = speculative("chow:alpha=0.5", 60, 32);
  const double tau = drafted.tokens / drafted.target_passes;
  EXPECT_EQ(chow.target_passes, chow.deferral);
  EXPECT_GT(chow.deferral / chow.tokens, 1 / tau);
  EXPECT_LT(drafted.target_passes, chow.target_passes);
}

}  // namespace
}  // namespace outrider::eval
