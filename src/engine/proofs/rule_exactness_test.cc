// SPDX-License-Identifier: Apache-2.0
// Promise 1 for every rule, by enumeration: the joint distribution of the emitted tokens is that of
// the rule's process, and the statistics are its expectations, on chains and trees, under every
// verification. (Mutants: rule_mutants_test.cc.)
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/speculation.h"
#include "sampling/divergence.h"
#include "speculate/acceptances/multi_round.h"
#include "speculate/drafters/model_drafter.h"
#include "speculate/rules/make_rule.h"
#include "speculate/tree_shapes/dynamic_shape.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/proofs/exactness.h"
#include "tests/support/proofs/rule_pair.h"
#include "tests/support/proofs/rule_process.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using test::distance;
using test::enumerate_rule;
using test::FixedViews;
using test::kExact;
using test::rule_process;
using test::RuleOutcome;
using test::RulePair;
using test::RuleTrial;
using test::TableModel;
using test::TemporaryDirectory;
using test::transforms;
using test::trial_of;
using test::ValueStop;
using test::views_behind;

std::string router_file() {
  static const TemporaryDirectory directory;
  const std::string path = directory.path() / "router.json";
  std::ofstream(path) << R"({"format": "outrider-router", "version": 1, "bias": 0.3, "weights":
    {"draft_max": -2.0, "target_entropy": -0.7, "total_variation": 3.5, "agreement": -0.4}})";
  return path;
}

// Every rule, with parameters at which it has an effect.
std::vector<std::string> specs() {
  return {"exact",
          "chow:alpha=0.4",
          "chow:alpha=0.8,loss=log",
          "diff:alpha=-0.1",
          "diff:alpha=0.2",
          "diff:alpha=0.1,loss=log",
          "opt:alpha=0.3",
          "opt:alpha=-0.5",
          "opt:alpha=0.4,loss=log",
          "token-v1:alpha=0.3",
          "token-v2:alpha=0.2",
          "token-v3:alpha=0.5",
          "token-v3:alpha=0.9",
          "lossy:alpha=0.3",
          "lossy:alpha=0.5,beta=0.6",
          "lossy:alpha=0.4,beta=auto",
          "lossy:kl=0.05",
          "lenience:eps=0.6",
          "lenience:f=square,eps=0.6",
          "lenience:f=exp,eps=0.5",
          "budget:kl=0.1",
          "budget:total=0.15",
          "budget:kl=0.08,total=0.15",
          "bild-sampled:alpha=0.9",
          "bild-sampled:alpha=0.3,distance=tv",
          "bild-sampled:alpha=0.4,distance=kl",
          "bild-sampled:alpha=0.1,distance=js",
          "router:path=" + router_file()};
}

// The distance of distribution and statistics from the rule's process.
double error_of(const RuleTrial& trial) {
  const RuleOutcome emitted = enumerate_rule(trial);
  const RuleOutcome expected = rule_process(trial);
  EXPECT_NEAR(emitted.weight, 1.0, kExact);
  double worst = distance(emitted.dist, expected.dist);
  const auto compare = [&worst](double got, double wanted) {
    if (std::isinf(wanted) && got == wanted) return;
    const double difference = std::abs(got - wanted);
    worst = std::isnan(difference) ? 1.0 : std::max(worst, difference);
  };
  compare(emitted.cost.kl, expected.cost.kl);
  compare(emitted.cost.total_variation, expected.cost.total_variation);
  compare(emitted.cost.deferral, expected.cost.deferral);
  return worst;
}

class RuleExactness : public ::testing::TestWithParam<const char*> {};

TEST_P(RuleExactness, Chains) {
  for (const std::string& spec : specs()) {
    const auto rule = make_rule(spec);
    const Verification verification = make_verification(spec, GetParam());
    for (const auto& [name, sampling] : transforms()) {
      for (int length = 1; length <= 3; ++length) {
        for (std::uint32_t seed = 1; seed <= 3; ++seed) {
          RulePair pair(seed, seed == 3 ? 4 : 3);
          EXPECT_LT(error_of(trial_of(pair, *rule, *verification.acceptance, length, sampling)),
                    kExact)
              << spec << ", " << name << ", length " << length;
        }
      }
    }
  }
}

TEST_P(RuleExactness, Trees) {
  if (std::string(GetParam()) == "block") return;
  std::vector<std::shared_ptr<const TreeShape>> shapes;
  for (const Siblings siblings :
       {Siblings::without_replacement, Siblings::with_replacement, Siblings::top_ranks}) {
    shapes.push_back(std::make_shared<FixedShape>(std::vector<int>{3}, siblings));
    shapes.push_back(std::make_shared<FixedShape>(std::vector<int>{2, 1, 2}, siblings));
  }
  for (const std::string& spec : specs()) {
    const auto rule = make_rule(spec);
    const Verification verification = make_verification(spec, GetParam());
    for (const auto& [name, sampling] : transforms()) {
      for (const auto& shape : shapes) {
        RulePair pair(3);
        RuleTrial trial = trial_of(pair, *rule, *verification.acceptance, 1, sampling);
        trial.trial.shape = shape;
        trial.first_round_only = true;
        EXPECT_LT(error_of(trial), kExact) << spec << ", " << name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Verify, RuleExactness,
                         ::testing::Values("exact", "block", "traversal", "coupled"));

// Several rounds, with drafts that end depending on a token's value: the drafter's state after
// answering about a leaf must be right.
TEST(RuleExactness, RoundsAfterLeavesOfTreesAndShortChains) {
  const ValueStop stop;
  for (const char* spec : {"token-v1:alpha=0.3", "diff:alpha=0.1", "budget:total=0.15"}) {
    const auto rule = make_rule(std::string(spec));
    const Verification verification = make_verification(spec, "exact");
    for (const double temperature : {1.0, 0.0}) {
      for (std::uint32_t seed = 1; seed <= 2; ++seed) {
        RulePair pair(seed);
        RuleTrial trial =
            trial_of(pair, *rule, *verification.acceptance, 2, {.temperature = temperature});
        trial.trial.n_tokens = 4;
        trial.trial.stop = &stop;
        EXPECT_LT(error_of(trial), kExact) << spec;
        trial.trial.shape =
            std::make_shared<FixedShape>(std::vector<int>{2, 1}, Siblings::without_replacement);
        EXPECT_LT(error_of(trial), kExact) << spec;
      }
    }
  }
}

TEST(RuleExactness, DynamicTreesWhoseLeavesHaveDistributions) {
  for (const char* spec : {"token-v3:alpha=0.5", "chow:alpha=0.4", "lossy:alpha=0.3"}) {
    const auto rule = make_rule(std::string(spec));
    const Verification verification = make_verification(spec, "exact");
    for (const double temperature : {1.0, 0.0}) {
      RulePair pair(4);
      RuleTrial trial =
          trial_of(pair, *rule, *verification.acceptance, 2, {.temperature = temperature});
      trial.trial.shape = std::make_shared<DynamicShape>(DynamicShape::Limits{4, 2, 2});
      EXPECT_LT(error_of(trial), kExact) << spec;
    }
  }
}

// Beyond the drafter's context, positions follow the target.
TEST(RuleExactness, BeyondTheDraftersContextTheTargetGoesOn) {
  TableModel target(3, 6);
  ModelDrafter drafter(std::make_unique<TableModel>(3, 7, 3), 3);
  const Verification verification = make_verification("chow:alpha=1", "exact");
  const test::Trial trial{.target = &target,
                          .drafter = &drafter,
                          .acceptance = verification.acceptance.get(),
                          .draft_length = 2,
                          .sampling = {.temperature = 1},
                          .prompt = {0, 2},
                          .n_tokens = 4};
  const test::Enumerated enumerated = test::enumerate(trial);
  // Two positions fit: after 2 and 3 tokens. The rest follow the target.
  TableModel draft_table(3, 7);
  test::TextDistribution expected;
  const auto extend = [&](const auto& self, const std::vector<TokenId>& emitted,
                          double prob) -> void {
    if (emitted.size() == 4) {
      expected[emitted] += prob;
      return;
    }
    std::vector<TokenId> prefix = {0, 2};
    prefix.insert(prefix.end(), emitted.begin(), emitted.end());
    Distribution dist;
    Transform({.temperature = 1}, 3)
        .distribution(emitted.size() < 2 ? draft_table.logits(prefix) : target.logits(prefix),
                      dist);
    for (std::size_t index = 0; index < dist.ids.size(); ++index) {
      std::vector<TokenId> longer = emitted;
      longer.push_back(dist.ids[index]);
      self(self, longer, prob * dist.probs[index]);
    }
  };
  extend(extend, {}, 1.0);
  EXPECT_LT(distance(enumerated.dist, expected), kExact);
}

// --- Statistics

// Texts ended by a token within a round: tokens judged but never emitted cost nothing.
TEST(RuleStatistics, EveryEmittedTokenIsCountedOnce) {
  for (const char* verify : {"exact", "block", "traversal", "coupled"}) {
    for (const char* spec : {"token-v3:alpha=0.5", "diff:alpha=0.1", "budget:total=0.15"}) {
      const auto rule = make_rule(std::string(spec));
      const Verification verification = make_verification(spec, verify);
      RulePair pair(2);
      const RuleTrial trial =
          trial_of(pair, *rule, *verification.acceptance, 3, {.temperature = 1});
      test::EnumeratingChance chance;
      Decoder decoder(pair.target, &pair.drafter, *verification.acceptance, chain_shape(3),
                      nullptr);
      int n_cut = 0;
      chance.for_each_path([&] {
        Stream stream(0, trial.trial.prompt, Transform({.temperature = 1}, 3), chance);
        stream.max_total = stream.n_prompt + 5;
        decoder.begin(stream);
        Stream* const streams[] = {&stream};
        while (!stream.finished) {
          decoder.round(streams, [](Stream&, const Committed& token) { return token.id == 1; });
        }
        decoder.end(stream);
        n_cut += stream.tokens.back() == 1 && stream.verdict.next != 1 ? 1 : 0;
        RuleCost expected;
        std::vector<TokenId> emitted;
        for (auto id = stream.tokens.begin() + stream.n_prompt; id != stream.tokens.end(); ++id) {
          FixedViews views = views_behind(trial, emitted);
          views.spent = expected.kl;
          Distribution dist;
          rule->rule_prob(views, 0, dist);
          const RuleCost cost = cost_of(*rule, views, 0, dist);
          expected.kl += cost.kl;
          expected.total_variation += cost.total_variation;
          expected.deferral += cost.deferral;
          emitted.push_back(*id);
        }
        const RuleCost& counted = stream.counts.rule_cost;
        EXPECT_TRUE(counted.kl == expected.kl || std::abs(counted.kl - expected.kl) < kExact);
        EXPECT_NEAR(counted.total_variation, expected.total_variation, kExact);
        EXPECT_NEAR(counted.deferral, expected.deferral, kExact);
      });
      EXPECT_GT(n_cut, 0) << verify << ", " << spec;
    }
  }
}

// The certificate: not just the average text but every text stays within its budget.
TEST(RuleStatistics, NoTextCostsMoreThanItsBudget) {
  for (const char* verify : {"exact", "block", "traversal", "coupled"}) {
    const auto rule = make_rule(std::string("budget:total=0.15"));
    const Verification verification = make_verification("budget:total=0.15", verify);
    double largest = 0;
    for (std::uint32_t seed = 1; seed <= 6; ++seed) {
      RulePair pair(seed);
      RuleTrial trial = trial_of(pair, *rule, *verification.acceptance, 2, {.temperature = 1});
      trial.trial.n_tokens = 4;
      largest = std::max(largest, enumerate_rule(trial).largest_kl);
    }
    EXPECT_LE(largest, 0.15 * (1 + 1e-9));
    EXPECT_GT(largest, 0.14);
  }
}

TEST(RuleStatistics, ExactCostsNothing) {
  for (const char* verify : {"exact", "block", "traversal", "coupled"}) {
    const Verification verification = make_verification("exact", verify);
    RulePair pair(1);
    const auto rule = make_rule(std::string("exact"));
    const RuleOutcome outcome =
        enumerate_rule(trial_of(pair, *rule, *verification.acceptance, 2, {.temperature = 1}));
    EXPECT_EQ(outcome.cost.kl, 0);
    EXPECT_EQ(outcome.cost.total_variation, 0);
    EXPECT_EQ(outcome.cost.deferral, 0);
  }
}

// --- Acceptances without a rule

// At temperature 0 typical acceptance emits the target's own tokens, whatever the parameters.
TEST(Typical, AtTemperatureZeroIsTheTargets) {
  for (const char* spec : {"typical", "typical:epsilon=0.5,delta=1", "typical:epsilon=0,delta=0"}) {
    const Verification verification = make_verification(spec, "exact");
    for (std::uint32_t seed = 1; seed <= 10; ++seed) {
      RulePair pair(seed);
      const test::Trial trial{.target = &pair.target,
                              .drafter = &pair.drafter,
                              .acceptance = verification.acceptance.get(),
                              .draft_length = 3,
                              .sampling = {.temperature = 0},
                              .prompt = {0, 2},
                              .n_tokens = 5};
      EXPECT_EQ(test::enumerate(trial).dist, test::target_distribution(trial));
    }
  }
}

// The Big-Little decoder as in its paper: a loop over two models.
std::vector<TokenId> big_little(RulePair& pair, std::vector<TokenId> tokens, int n_tokens,
                                int window, double fallback, double rollback) {
  const Transform transform({.temperature = 0}, 3);
  const auto raw = [&](TableModel& model, const std::vector<TokenId>& prefix) {
    Distribution distribution;
    transform.raw_distribution(model.logits(prefix), distribution);
    return distribution;
  };
  const std::size_t total = tokens.size() + static_cast<std::size_t>(n_tokens);
  while (tokens.size() < total) {
    const std::size_t checked = tokens.size();
    while (tokens.size() < checked + static_cast<std::size_t>(window) &&
           tokens.size() + 1 < total) {
      const Distribution small = raw(pair.draft_table, tokens);
      if (largest_prob(small) < fallback) break;
      tokens.push_back(small.argmax());
    }
    for (std::size_t at = checked; at < tokens.size(); ++at) {
      const std::vector<TokenId> prefix(tokens.begin(),
                                        tokens.begin() + static_cast<std::ptrdiff_t>(at));
      if (-std::log(raw(pair.target, prefix).prob(tokens[at])) > rollback) tokens.resize(at);
    }
    tokens.push_back(raw(pair.target, tokens).argmax());
  }
  return tokens;
}

TEST(Bild, IsTheBigLittleDecoder) {
  for (const double fallback : {0.0, 0.5, 0.7}) {
    for (const double rollback : {0.3, 1.0, 3.0}) {
      const std::string spec =
          "bild:fallback=" + std::to_string(fallback) + ",rollback=" + std::to_string(rollback);
      const Verification verification = make_verification(spec, "exact");
      EXPECT_DOUBLE_EQ(verification.draft_until, fallback);
      for (std::uint32_t seed = 1; seed <= 20; ++seed) {
        for (int window = 1; window <= 4; ++window) {
          RulePair pair(seed);
          test::Trial trial{.target = &pair.target,
                            .drafter = &pair.drafter,
                            .acceptance = verification.acceptance.get(),
                            .draft_length = window,
                            .sampling = {.temperature = 0},
                            .prompt = {0, 2},
                            .n_tokens = 8};
          std::vector<TokenId> expected = big_little(pair, {0, 2}, 8, window, fallback, rollback);
          expected.erase(expected.begin(), expected.begin() + 2);
          EXPECT_EQ(test::enumerate(trial).dist, (test::TextDistribution{{expected, 1.0}})) << spec;
          const ConfidenceStop until(verification.draft_until);
          trial.stop = &until;
          EXPECT_EQ(test::enumerate(trial).dist, (test::TextDistribution{{expected, 1.0}})) << spec;
        }
      }
    }
  }
}

// --- The paper's lemmas on the production loop

// Lemma 3: the first draft token is rejected with probability deferral * total variation, of the
// transformed distributions.
TEST(Lemmas, RejectionIsDeferralTimesTotalVariation) {
  for (const char* spec : {"chow:alpha=0.4", "diff:alpha=0.1", "opt:alpha=0.3"}) {
    const auto rule = make_rule(std::string(spec));
    const Verification verification = make_verification(spec, "exact");
    int n_deferred = 0;
    for (const auto& [name, sampling] : transforms()) {
      for (std::uint32_t seed = 1; seed <= 10; ++seed) {
        RulePair pair(seed);
        const RuleTrial trial = trial_of(pair, *rule, *verification.acceptance, 1, sampling);
        FixedViews views = views_behind(trial, {});
        Distribution dist;
        rule->rule_prob(views, 0, dist);
        const double deferral = rule->deferral(views, 0, dist);
        const double rejected = deferral * total_variation(views.draft_prob, views.target_prob);
        EXPECT_NEAR(1 - enumerate_rule(trial).accepted_in_first_round, rejected, kExact) << spec;
        n_deferred += deferral > 0 && rejected > 0 ? 1 : 0;
      }
    }
    EXPECT_GT(n_deferred, 5) << spec;
  }
}

// Lemma 7: at temperature 0 token-v3 accepts the tokens that lossy greedy speculation accepts.
TEST(Lemmas, TokenV3AtTemperatureZeroIsLossyGreedy) {
  for (const double alpha : {0.1, 0.5, 0.9}) {
    const std::string suffix = ":alpha=" + std::to_string(alpha);
    const Verification token = make_verification("token-v3" + suffix, "exact");
    const Verification greedy = make_verification("lossy-greedy" + suffix, "exact");
    const Verification greedy_throughout =
        make_verification("lossy-greedy" + suffix + ",bonus=rule", "exact");
    const auto rule = make_rule("token-v3" + suffix);
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
      RulePair pair(seed);
      const auto outcome = [&](const Verification& verification) {
        return enumerate_rule(
            trial_of(pair, *rule, *verification.acceptance, 3, {.temperature = 0}));
      };
      EXPECT_EQ(outcome(token).accepted_in_first_round, outcome(greedy).accepted_in_first_round);
      EXPECT_EQ(outcome(token).dist, outcome(greedy_throughout).dist);
    }
  }
}

// Lemma 10: under greedy decoding opt emits the same as diff.
TEST(Lemmas, OptIsDiffUnderGreedyDecoding) {
  for (const double alpha : {-0.3, 0.0, 0.2, 0.6}) {
    const std::string suffix = ":alpha=" + std::to_string(alpha);
    const auto diff = make_rule("diff" + suffix);
    const auto opt = make_rule("opt" + suffix);
    const auto diff_acceptance = make_multi_round(diff);
    const auto opt_acceptance = make_multi_round(opt);
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
      RulePair pair(seed);
      const SamplingParams greedy{.temperature = 0};
      EXPECT_EQ(enumerate_rule(trial_of(pair, *diff, *diff_acceptance, 2, greedy)).dist,
                enumerate_rule(trial_of(pair, *opt, *opt_acceptance, 2, greedy)).dist);
    }
  }
}

}  // namespace
}  // namespace outrider
