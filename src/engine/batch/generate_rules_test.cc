// SPDX-License-Identifier: Apache-2.0
// Rules through the public interface, on a tiny random pair of real models: at their end points
// they give the two models themselves, bit for bit, for any draft shape and verification.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "outrider/error.h"
#include "outrider/generate.h"
#include "tests/support/models/tiny_pair.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kPrompt = "A small test.";

class RulesOnModels : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<test::TemporaryDirectory>();
    test::write_tiny_pair(folder_->path());
    target_ = Model::load(folder_->path() / "target", {.threads = 1});
    draft_ = Model::load(folder_->path() / "draft", {.threads = 1});
  }
  static void TearDownTestSuite() {
    target_.reset();
    draft_.reset();
    folder_.reset();
  }
  static Generator make(const std::string& rule, const std::string& tree = "chain:length=4",
                        const std::string& verify = "exact") {
    return Generator(target_, {.drafter = "model:" + (folder_->path() / "draft").string(),
                               .rule = rule,
                               .tree = tree,
                               .verify = verify,
                               .drafter_options = {.threads = 1}});
  }
  static std::string message_of(const std::function<void()>& action) {
    try {
      action();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  }
  static GenerateOptions options_at(double temperature) {
    return {.max_tokens = 50,
            .sampling = {.temperature = temperature, .repetition_penalty = 1.1},
            .seed = 5,
            .ignore_eos = true};
  }

  static inline std::unique_ptr<test::TemporaryDirectory> folder_;
  static inline std::shared_ptr<const Model> target_;
  static inline std::shared_ptr<const Model> draft_;
};

// Verifications whose tokens are those of plain sampling from rule_prob.
struct Setting {
  const char* tree;
  const char* verify;
  double temperature;
};
const std::vector<Setting> kSettings = {
    {"chain:length=1", "exact", 0},   {"chain:length=4", "exact", 0},
    {"chain:length=4", "block", 0},   {"widths:3,2,1", "exact", 0},
    {"widths:3,2,1", "traversal", 0}, {"dynamic:total=12,depth=4,topk=3", "exact", 0},
    {"chain:length=4", "coupled", 0}, {"chain:length=4", "coupled", 1},
    {"widths:2,2,1", "coupled", 0.8}};

TEST_F(RulesOnModels, AtAlphaOneTheTextIsTheDrafters) {
  for (const Setting& setting : kSettings) {
    const GenerateOptions options = options_at(setting.temperature);
    const std::vector<TokenId> drafters = Generator(draft_).generate(kPrompt, options).ids;
    EXPECT_NE(drafters, Generator(target_).generate(kPrompt, options).ids);
    for (const char* rule : {"chow:alpha=1", "diff:alpha=1", "token-v1:alpha=1", "token-v2:alpha=1",
                             "token-v3:alpha=1"}) {
      const GenerateResult result =
          make(rule, setting.tree, setting.verify).generate(kPrompt, options);
      EXPECT_EQ(result.ids, drafters) << rule << " " << setting.tree << " " << setting.verify;
      EXPECT_EQ(result.statistics.deferral_rate, 0);
    }
  }
}

TEST_F(RulesOnModels, AtTheStrictEndTheTextIsTheTargets) {
  for (const Setting& setting : kSettings) {
    const GenerateOptions options = options_at(setting.temperature);
    const std::vector<TokenId> targets = Generator(target_).generate(kPrompt, options).ids;
    for (const char* rule : {"chow:alpha=-0.1", "diff:alpha=-1", "token-v1:alpha=-1",
                             "token-v2:alpha=-0.1", "token-v3:alpha=-0.1"}) {
      const GenerateResult result =
          make(rule, setting.tree, setting.verify).generate(kPrompt, options);
      EXPECT_EQ(result.ids, targets) << rule << " " << setting.tree << " " << setting.verify;
      EXPECT_EQ(result.statistics.rule_kl, 0);
      EXPECT_EQ(result.statistics.rule_tv, 0);
      EXPECT_NEAR(result.statistics.deferral_rate, 1, 1e-12);
    }
  }
}

// Between the end points, tokens do not depend on drafts.
TEST_F(RulesOnModels, CoupledTextsDoNotDependOnTheDraft) {
  for (const char* rule : {"diff:alpha=0.05", "token-v3:alpha=0.5", "lossy:alpha=0.4",
                           "budget:kl=0.1", "budget:total=2", "opt:alpha=0.2,loss=log"}) {
    const GenerateOptions options = options_at(0.9);
    const GenerateResult first = make(rule, "chain:length=1", "coupled").generate(kPrompt, options);
    for (const char* tree : {"chain:length=6", "widths:3,2", "dynamic:total=10,depth=3,topk=3"}) {
      const GenerateResult other = make(rule, tree, "coupled").generate(kPrompt, options);
      EXPECT_EQ(other.ids, first.ids) << rule << " " << tree;
      EXPECT_EQ(other.statistics.rule_kl, first.statistics.rule_kl) << rule << " " << tree;
      EXPECT_EQ(other.statistics.deferral_rate, first.statistics.deferral_rate);
    }
    EXPECT_GT(first.statistics.rule_kl, 0) << rule;
    EXPECT_GT(first.statistics.deferral_rate, 0) << rule;
    EXPECT_LT(first.statistics.deferral_rate, 1) << rule;
  }
}

TEST_F(RulesOnModels, BudgetsHold) {
  GenerateOptions options = options_at(1);
  for (options.seed = 0; options.seed < 5; ++options.seed) {
    const GenerateResult text = make("budget:total=1.5").generate(kPrompt, options);
    EXPECT_LE(text.statistics.rule_kl, 1.5 * (1 + 1e-9));
    EXPECT_GT(text.statistics.rule_kl, 1.4);
    const GenerateResult token = make("budget:kl=0.02").generate(kPrompt, options);
    EXPECT_LE(token.statistics.rule_kl, 0.02 * 50 * (1 + 1e-9));
  }
}

TEST_F(RulesOnModels, TextsOfABatchAreThoseOfTextsAlone) {
  for (const char* rule : {"token-v1:alpha=0.2", "budget:total=1", "typical"}) {
    std::vector<GenerateRequest> requests;
    for (int i = 0; i < 3; ++i) {
      GenerateOptions options = options_at(1);
      options.max_tokens = 20 + 7 * i;
      requests.push_back(
          {.prompt = target_->tokenizer().encode(kPrompt, true), .options = options});
      requests.back().prompt.push_back(10 + i);
    }
    Generator generator = make(rule, "widths:2,1,1");
    const std::vector<GenerateResult> together = generator.generate(requests);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const GenerateResult alone = std::move(generator.generate({&requests[i], 1}).front());
      EXPECT_EQ(together[i].ids, alone.ids) << rule;
      EXPECT_EQ(together[i].statistics.rule_kl, alone.statistics.rule_kl);
    }
  }
}

// bonus=target saves the drafter's step after an accepted draft.
TEST_F(RulesOnModels, BonusFromTheTargetAsksTheDrafterForLess) {
  const GenerateOptions options = options_at(0);
  const GenerateStatistics by_rule =
      make("chow:alpha=1,bonus=rule").generate(kPrompt, options).statistics;
  const GenerateStatistics by_target =
      make("chow:alpha=1,bonus=target").generate(kPrompt, options).statistics;
  EXPECT_EQ(by_rule.target_passes, 10);  // every draft of 4 is accepted: 5 tokens a round
  EXPECT_EQ(by_rule.drafter_passes, 50);
  EXPECT_EQ(by_target.target_passes, 10);
  EXPECT_EQ(by_target.drafter_passes, 40);
  EXPECT_EQ(by_target.deferral_rate, 0.2);
  EXPECT_EQ(make("chow:alpha=1").rule_scope(), RuleScope::prefix);
  EXPECT_EQ(make("chow:alpha=1,bonus=target").rule_scope(), RuleScope::round);
  EXPECT_EQ(make("typical").rule_scope(), RuleScope::round);
  EXPECT_EQ(make("exact").rule_scope(), RuleScope::prefix);
}

TEST_F(RulesOnModels, MisfitsAreRefused) {
  const GenerateOptions warm = options_at(0.5);
  for (const char* rule : {"bild", "lossy-greedy:alpha=0.2"}) {
    EXPECT_THAT(message_of([&] { make(rule).generate(kPrompt, warm); }),
                HasSubstr("temperature: expected 0 with the rule"));
    EXPECT_EQ(make(rule).generate(kPrompt, options_at(0)).ids.size(), 50U);
  }
  EXPECT_THAT(message_of([&] { make("bild", "widths:2,2"); }), HasSubstr("a chain"));
  for (const char* rule : {"chow:alpha=0.5", "lossy:alpha=0.5", "bild"}) {
    EXPECT_THAT(
        message_of([&] { Generator(target_, {.drafter = "none", .rule = rule}); }),
        AllOf(HasSubstr("a drafter that has distributions (model:PATH"), HasSubstr("eagle:PATH"),
              HasSubstr("), got the drafter none"), Not(HasSubstr("ngram"))));
    EXPECT_THAT(message_of([&] { check_speculation({.drafter = "none", .rule = rule}); }),
                HasSubstr("model:PATH"));
  }
  EXPECT_EQ(message_of([&] { Generator(target_, {.drafter = "none", .rule = "typical"}); }),
            "no error");
}

}  // namespace
}  // namespace outrider
