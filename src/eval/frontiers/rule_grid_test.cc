// SPDX-License-Identifier: Apache-2.0
#include "eval/frontiers/rule_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "outrider/error.h"

namespace outrider::eval {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> rules_of(const std::string& list, std::vector<double> alphas = {}) {
  std::vector<std::string> rules;
  for (const RuleSetting& setting : expand_rules(list, alphas)) rules.push_back(setting.rule);
  return rules;
}

TEST(RuleGrid, PutsAlphasWhereARuleTakesThem) {
  EXPECT_THAT(rules_of("exact,chow,lossy:beta=auto", {0, 0.25}),
              ElementsAre("exact", "chow:alpha=0", "chow:alpha=0.25", "lossy:beta=auto,alpha=0",
                          "lossy:beta=auto,alpha=0.25"));
  const auto settings = expand_rules("lossy:beta=auto", std::array{0.25});
  EXPECT_EQ(settings[0].family, "lossy:beta=auto");
  EXPECT_EQ(settings[0].parameter, "alpha");
  EXPECT_EQ(settings[0].value, 0.25);
}

TEST(RuleGrid, SweepsLossyWhereItsBetaAllows) {
  EXPECT_THAT(rules_of("lossy:beta=0.3"),
              ElementsAre("lossy:beta=0.3,alpha=0.7", "lossy:beta=0.3,alpha=0.8",
                          "lossy:beta=0.3,alpha=0.9", "lossy:beta=0.3,alpha=0.95"));
}

TEST(RuleGrid, TakesValuesFromTheSpecFirst) {
  EXPECT_THAT(rules_of("chow:alpha=0.1|0.9,loss=log,diff:alpha=0.3", {0.5}),
              ElementsAre("chow:loss=log,alpha=0.1", "chow:loss=log,alpha=0.9", "diff:alpha=0.3"));
  EXPECT_THAT(rules_of("budget:kl=0.1|1"), ElementsAre("budget:kl=0.1", "budget:kl=1"));
  EXPECT_THAT(rules_of("lossy:alpha=0.5,beta=0.6|1"),
              ElementsAre("lossy:alpha=0.5,beta=0.6", "lossy:alpha=0.5,beta=1"));
  EXPECT_THAT(rules_of("typical,bild:fallback=0.5|0.6"),
              ElementsAre("typical", "bild:fallback=0.5", "bild:fallback=0.6"));
  EXPECT_THAT(rules_of("fly:entropy=0.3|0.6,window=4"),
              ElementsAre("fly:window=4,entropy=0.3", "fly:window=4,entropy=0.6"));
  EXPECT_THAT(rules_of("relaxed:delta=0.2|0.6"),
              ElementsAre("relaxed:delta=0.2", "relaxed:delta=0.6"));
}

TEST(RuleGrid, TakesASettingOnce) {
  EXPECT_THAT(rules_of("exact,chow:alpha=0|0,exact"), ElementsAre("exact", "chow:alpha=0"));
}

// Default sweeps stay within every rule's range and include both ends.
TEST(RuleGrid, SpansEveryRuleWithoutBeingTold) {
  for (const char* rule :
       {"chow", "chow:loss=log", "diff", "diff:loss=log", "opt", "opt:loss=log", "token-v1",
        "token-v2", "token-v3", "lossy", "lossy:beta=auto", "lossy-greedy", "lenience",
        "lenience:f=exp", "budget", "bild-sampled", "bild-sampled:distance=js"}) {
    EXPECT_GE(rules_of(rule).size(), 10U) << rule;
  }
  EXPECT_EQ(rules_of("budget:total=3").size(), 1U);
}

TEST(RuleGrid, RefusesWhatTheRuleItselfWould) {
  const auto problem = [](const std::string& list, std::vector<double> alphas) -> std::string {
    try {
      (void)expand_rules(list, alphas);
    } catch (const UsageError& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_THAT(problem("cow", {}), HasSubstr("one of exact, chow"));
  EXPECT_THAT(problem("chow", {2}), HasSubstr("a number from -1 to 1"));
  EXPECT_THAT(problem("lossy", {0.5, 1}), HasSubstr("alpha"));
  EXPECT_THAT(problem("chow:alpha=0.1|x", {}), HasSubstr("got x"));
  EXPECT_THAT(problem("chow:beta=1", {}), HasSubstr("beta"));
  EXPECT_THAT(problem("chow,,diff", {}), HasSubstr("a name"));
  EXPECT_THAT(problem("router", {}), HasSubstr("path="));
}

}  // namespace
}  // namespace outrider::eval
