// SPDX-License-Identifier: Apache-2.0
// Three models in a cascade: enumerates every outcome of both loops and compares with the chain
// rule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "outrider/error.h"
#include "speculate/drafters/composite/staged_drafter.h"
#include "speculate/drafters/model_drafter.h"
#include "speculate/registry/drafter_registry.h"
#include "speculate/rules/make_rule.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/proofs/exactness.h"
#include "tests/support/proofs/rule_process.h"

namespace outrider {
namespace {

using test::distance;
using test::enumerate_rule;
using test::FixedViews;
using test::kCaught;
using test::kExact;
using test::rule_process;
using test::RuleOutcome;
using test::RuleTrial;
using test::TableModel;
using test::transforms;
using test::Trial;
using test::views_behind;
using ::testing::HasSubstr;

constexpr int kVocabulary = 3;

// The largest model is the target. `inner` is the rule between the small and the middle model,
// `outer` the one between their cascade and the large model.
struct ThreeModels {
  explicit ThreeModels(std::uint32_t seed)
      : large(kVocabulary, seed), middle(kVocabulary, 10 + seed), small(kVocabulary, 20 + seed) {}

  TableModel large, middle, small;
  std::shared_ptr<const Rule> inner;
  std::shared_ptr<const Rule> outer;

  std::unique_ptr<StagedDrafter> drafter(int inner_length = 2) const {
    CompositeDrafter::Part cheaper{
        std::make_unique<ModelDrafter>(std::make_unique<TableModel>(small), kVocabulary),
        chain_shape(inner_length)};
    return std::make_unique<StagedDrafter>("cascade", std::make_unique<TableModel>(middle),
                                           std::move(cheaper), inner);
  }

  // Each position has two views: the inner rule's distribution over the small and the middle model
  // is the drafter's distribution before the large one.
  RuleTrial trial(Drafter& by, const Acceptance& acceptance, const SamplingParams& sampling) {
    RuleTrial trial{.trial = {.target = &large,
                              .drafter = &by,
                              .acceptance = &acceptance,
                              .shape = chain_shape(2),
                              .sampling = sampling,
                              .prompt = {0, 2},
                              .n_tokens = 3},
                    .rule = outer.get()};
    trial.views = [this, sampling](const std::vector<TokenId>& emitted) {
      const auto views_of_two = [&](TableModel& draft, TableModel& target) {
        const RuleTrial two{.trial = {.target = &target, .sampling = sampling, .prompt = {0, 2}},
                            .draft_table = &draft};
        return views_behind(two, emitted);
      };
      FixedViews within = views_of_two(small, middle);
      FixedViews views = views_of_two(middle, large);
      inner->rule_prob(within, 0, views.draft_prob);
      return views;
    };
    return trial;
  }
};

struct RulePairCase {
  const char* inner;
  const char* outer;
};

class CascadeDrafter : public ::testing::TestWithParam<RulePairCase> {};

TEST_P(CascadeDrafter, FollowsBothRules) {
  for (std::uint32_t seed = 1; seed <= 3; ++seed) {
    ThreeModels models(seed);
    models.inner = make_rule(GetParam().inner);
    models.outer = make_rule(GetParam().outer);
    const auto drafter = models.drafter();
    for (const char* verify : {"exact", "block", "traversal", "coupled"}) {
      const Verification verification = make_verification(GetParam().outer, verify);
      for (const auto& [name, sampling] : transforms()) {
        const RuleTrial trial = models.trial(*drafter, *verification.acceptance, sampling);
        const RuleOutcome expected = rule_process(trial);
        const RuleOutcome got = enumerate_rule(trial);
        EXPECT_LT(distance(got.dist, expected.dist), kExact)
            << seed << ", " << verify << ", " << name;
        EXPECT_NEAR(got.weight, 1, kExact) << seed << ", " << verify << ", " << name;
        // Infinite where a rule emits a token that the target gives no probability.
        if (std::isfinite(expected.cost.kl)) {
          EXPECT_NEAR(got.cost.kl, expected.cost.kl, 1e-9)
              << seed << ", " << verify << ", " << name;
        } else {
          EXPECT_EQ(got.cost.kl, expected.cost.kl) << seed << ", " << verify << ", " << name;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    , CascadeDrafter,
    ::testing::Values(RulePairCase{"exact", "exact"}, RulePairCase{"token-v3:alpha=0.4", "exact"},
                      RulePairCase{"exact", "lossy:alpha=0.3"},
                      RulePairCase{"chow:alpha=0.4", "chow:alpha=0.4"},
                      RulePairCase{"diff:alpha=0.1", "opt:alpha=0.3"},
                      RulePairCase{"lossy:alpha=0.3", "token-v1:alpha=0.2"},
                      RulePairCase{"budget:kl=0.1", "budget:kl=0.1,total=0.2"}),
    [](const auto& info) { return "Pair" + std::to_string(info.index); });

// The test above would fail if the drafts followed the middle model's distribution instead of the
// rule's.
TEST(CascadeDrafterMutant, WithTheMiddleModelsDistributionIsCaught) {
  double worst = 0;
  for (std::uint32_t seed = 1; seed <= 3; ++seed) {
    ThreeModels models(seed);
    models.inner = std::make_shared<ExactRule>();
    const auto drafter = models.drafter();
    models.inner = make_rule("token-v3:alpha=0.4");
    models.outer = make_rule("lossy:alpha=0.3");
    const Verification verification = make_verification("lossy:alpha=0.3", "exact");
    const RuleTrial trial = models.trial(*drafter, *verification.acceptance, {.temperature = 1});
    worst = std::max(worst, distance(enumerate_rule(trial).dist, rule_process(trial).dist));
  }
  EXPECT_GT(worst, kCaught);
}

// Where the middle model is asked less often, the small model's tokens are kept; the inner rule
// says how many.
TEST(CascadeDrafterEnds, AlphaOneDraftsWhatTheSmallModelWould) {
  ThreeModels models(1);
  models.inner = make_rule("chow:alpha=1");
  models.outer = std::make_shared<ExactRule>();
  const auto drafter = models.drafter();
  ModelDrafter alone(std::make_unique<TableModel>(models.small), kVocabulary);
  const auto acceptance = make_multi_round(models.outer);
  const auto accepted = [&](Drafter& by) {
    return enumerate_rule(models.trial(by, *acceptance, {.temperature = 1}))
        .accepted_in_first_round;
  };
  EXPECT_NEAR(accepted(*drafter), accepted(alone), kExact);
}

TEST(CascadeDrafterSpec, RefusesWhatHasNoDistributionOfItsOwn) {
  const auto refusal = [](const std::string& spec) -> std::string {
    try {
      read_drafter(spec);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "taken";
  };
  EXPECT_EQ(refusal("cascade:chow:alpha=0.3+model:M+model:S"), "taken");
  EXPECT_EQ(refusal("cascade:exact+model:M+ngram"), "taken");
  EXPECT_EQ(refusal("cascade:budget:kl=0.1+model:M,confidence=0.2+model:S"), "taken");
  EXPECT_THAT(refusal("cascade:chow:alpha=0.3+model:M"), HasSubstr("three parts, got 2"));
  EXPECT_THAT(refusal("cascade:chow:alpha=0.3+ngram+model:S"), HasSubstr("ngram before the last"));
  EXPECT_THAT(refusal("cascade:chow:alpha=0.3+model:M+ngram"), HasSubstr("distributions"));
  EXPECT_THAT(refusal("cascade:exact+model:M+staged:model:S+ngram"), HasSubstr("three parts"));
  EXPECT_THAT(refusal("cascade:exact+model:M+staged:model:S\\+ngram"),
              HasSubstr("none of its own"));
  EXPECT_THAT(refusal("cascade:chow:alpha=0.3,bonus=target+model:M+model:S"),
              HasSubstr("bonus=rule"));
  EXPECT_THAT(refusal("cascade:budget:total=1+model:M+model:S"), HasSubstr("budget"));
  EXPECT_THAT(refusal("cascade:lossy-greedy:alpha=0.3+model:M+model:S"), HasSubstr("temperature"));
  EXPECT_THAT(refusal("cascade:typical+model:M+model:S"), HasSubstr("typical"));
  EXPECT_THAT(refusal("cascade:nosuch+model:M+model:S"), HasSubstr("nosuch"));
  EXPECT_THAT(refusal("cascade:exact+model:M+mtp"), HasSubstr("no features"));
}

}  // namespace
}  // namespace outrider
