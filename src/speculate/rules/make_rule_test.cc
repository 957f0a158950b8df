// SPDX-License-Identifier: Apache-2.0
#include "speculate/rules/make_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "outrider/error.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using ::testing::HasSubstr;

std::string refusal(const std::string& spec, const std::string& verify = "exact") {
  try {
    make_verification(spec, verify);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "taken";
}

TEST(MakeRule, TakesEveryName) {
  for (const char* spec : {"exact",
                           "chow:alpha=0.5",
                           "chow:alpha=3,loss=log",
                           "diff:alpha=-1",
                           "opt:alpha=20",
                           "token-v1:alpha=1",
                           "token-v2:alpha=0",
                           "token-v3:alpha=0.5,bonus=target",
                           "lossy:alpha=0",
                           "lossy:alpha=0.5,beta=0.5",
                           "lossy:alpha=0.7,beta=0.3",
                           "lossy:alpha=0.5,beta=auto",
                           "lossy:kl=0.1",
                           "lossy-greedy:alpha=0.2",
                           "lossy-greedy:alpha=0.2,bonus=rule",
                           "lenience:eps=1",
                           "lenience:f=exp,eps=0.1",
                           "budget:kl=0.1",
                           "budget:total=3",
                           "budget:kl=0.1,total=3",
                           "bild-sampled:alpha=2",
                           "bild-sampled:alpha=0.2,distance=js",
                           "typical",
                           "typical:epsilon=0.1,delta=0.2",
                           "bild",
                           "bild:fallback=0.5,rollback=3",
                           "fly",
                           "fly:entropy=0.5,top=10,window=2",
                           "relaxed",
                           "relaxed:top=3,delta=0.2,bonus=rule",
                           "relaxed:open=[THINK],close=[/THINK]"}) {
    EXPECT_EQ(refusal(spec), "taken") << spec;
    const std::string name = std::string(spec).substr(0, std::string(spec).find(':'));
    EXPECT_EQ(make_verification(spec, "exact").rule, name);
    const bool judges_drafts = name == "typical" || name == "bild" || name == "fly";
    if (judges_drafts || name == "relaxed") {
      EXPECT_THROW(make_rule(std::string(spec)), UsageError);
    } else {
      EXPECT_EQ(make_rule(std::string(spec))->name(), name);
    }
    if (!judges_drafts) {
      for (const char* verify : {"block", "traversal", "coupled"}) {
        EXPECT_EQ(refusal(spec, verify), "taken") << spec;
        EXPECT_EQ(make_verification(spec, verify).acceptance->name(), verify);
      }
    }
  }
}

TEST(MakeRule, RefusesWhatCannotBeMeant) {
  for (const std::string_view name : rule_names()) {
    EXPECT_THAT(refusal("token"), HasSubstr(std::string(name)));
    EXPECT_THAT(refusal(std::string(name) + ":mood=1"), HasSubstr("mood")) << name;
    EXPECT_THAT(refusal(std::string(name) + ":0.5"), HasSubstr("key=value after the colon"));
  }
  EXPECT_THAT(refusal("chow"), HasSubstr("alpha=, a number from -1 to 1, got none"));
  EXPECT_THAT(refusal("chow:alpha=1.5"), HasSubstr("a number from -1 to 1"));
  EXPECT_THAT(refusal("chow:alpha=nan"), HasSubstr("a number from -1 to 1"));
  EXPECT_THAT(refusal("diff:alpha=0,loss=square"), HasSubstr("zero-one, log"));
  EXPECT_THAT(refusal("token-v3:alpha=-2"), HasSubstr("a number from -1 to 1"));
  EXPECT_THAT(refusal("lossy:alpha=1"), HasSubstr("a number from 0"));
  EXPECT_THAT(refusal("lossy:alpha=0.5,beta=0.4"), HasSubstr("a number from 0.5 to 1"));
  EXPECT_THAT(refusal("lossy:kl=0.1,alpha=0.2"),
              HasSubstr("kl= alone, which finds alpha and beta itself, got alpha="));
  EXPECT_THAT(refusal("lossy:alpha=2"), HasSubstr("a number from 0 to 1, got 2"));
  EXPECT_THAT(refusal("lossy:alpha=1"), HasSubstr("a number from 0 to below 1, got 1"));
  EXPECT_THAT(refusal("lenience:eps=0"), HasSubstr("a number from 1e-06 to 1"));
  EXPECT_THAT(refusal("lenience:f=cubic,eps=1"), HasSubstr("linear, square, exp"));
  EXPECT_THAT(refusal("budget"), HasSubstr("kl= (nats per token) or total= (per text), got none"));
  EXPECT_THAT(refusal("budget:kl=-1"), HasSubstr("a number from 0"));
  EXPECT_THAT(refusal("bild-sampled:alpha=1,distance=l2"), HasSubstr("surprise, tv, kl, js"));
  EXPECT_THAT(refusal("router"),
              HasSubstr("path=, a router's JSON file or the folder of its router.json, got none"));
  EXPECT_THAT(refusal("typical:epsilon=2"), HasSubstr("a number from 0 to 1"));
  EXPECT_THAT(refusal("bild:fallback=-1"), HasSubstr("a number from 0 to 1"));
  EXPECT_THAT(refusal("fly:entropy=-1"), HasSubstr("a number from 0 to 1000"));
  EXPECT_THAT(refusal("fly:top=0"), HasSubstr("from 1 to 64"));
  EXPECT_THAT(refusal("fly:window=0"), HasSubstr("from 1 to 64"));
  EXPECT_THAT(refusal("fly", "block"), HasSubstr("exact with the rule fly"));
  EXPECT_THAT(refusal("relaxed:top=65"), HasSubstr("from 1 to 64"));
  EXPECT_THAT(refusal("relaxed:delta=2"), HasSubstr("a number from 0 to 1"));
  EXPECT_THAT(refusal("relaxed:open=a,close=a"), HasSubstr("two tokens, open= and close="));
  EXPECT_THAT(refusal("chow:alpha=0,bonus=none"), HasSubstr("rule, target"));
  EXPECT_THAT(refusal("exact:bonus=rule"), HasSubstr("no keys"));
  EXPECT_THAT(refusal("exact", "hope"), HasSubstr("exact, block, traversal, coupled"));
  EXPECT_THAT(refusal("typical", "block"), HasSubstr("exact with the rule typical"));
  EXPECT_THROW(make_verification("router:path=/nowhere/router.json", "exact"), Error);
  try {
    (void)make_rule("typical");
    FAIL() << "typical follows no rule";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("one of exact, chow"));
    EXPECT_THAT(error.what(), HasSubstr("got typical, which judges whole drafts"));
  }
}

TEST(MakeRule, NamesTheMarksThatAVocabularyLacks) {
  const auto refusal_with = [](const char* spec, const FindToken& find) -> std::string {
    try {
      (void)make_verification(spec, "exact", find);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "taken";
  };
  const FindToken half = [](std::string_view spelling) {
    return spelling == "<think>" ? std::optional<TokenId>(7) : std::nullopt;
  };
  EXPECT_EQ(refusal_with("relaxed", half),
            "[read rule] relaxed: expected a vocabulary with the tokens <think> and </think> "
            "(open= and close= name others), got one without </think>");
  EXPECT_THAT(refusal_with("relaxed:open=[THINK]", half), HasSubstr("got one without [THINK]"));
  EXPECT_EQ(refusal_with("relaxed:close=<think>,open=x",
                         [](std::string_view) { return std::optional<TokenId>(1); }),
            "taken");
  EXPECT_EQ(refusal_with("exact", half), "taken");
  try {
    (void)make_rule("relaxed");
    FAIL() << "relaxed needs a text";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("got relaxed, which reads marks in the text"));
  }
}

TEST(MakeRule, TakesARoutersFolder) {
  const test::TemporaryDirectory directory;
  std::ofstream(directory.path() / "router.json")
      << R"({"format": "outrider-router", "version": 1, "bias": 0.5, "weights": {"draft_max": 1}})";
  EXPECT_EQ(make_verification("router:path=" + directory.path().string(), "exact").rule, "router");
}

TEST(MakeRule, SaysWhatItNeeds) {
  const auto needs = [](const char* spec) {
    return make_verification(spec, "exact").acceptance->needs();
  };
  EXPECT_FALSE(needs("exact").draft_prob);
  EXPECT_FALSE(needs("typical").draft_prob);
  EXPECT_TRUE(needs("lossy:alpha=0.1").draft_prob);
  EXPECT_FALSE(needs("lossy:alpha=0.1").raw_draft);
  EXPECT_TRUE(needs("lossy:alpha=0.1").leaf_draft);
  EXPECT_FALSE(needs("lossy:alpha=0.1,bonus=target").leaf_draft);
  EXPECT_TRUE(needs("chow:alpha=0.1").raw_draft);
  EXPECT_FALSE(needs("chow:alpha=0.1").greedy);
  EXPECT_TRUE(needs("lossy-greedy:alpha=0.1").greedy);
  EXPECT_FALSE(needs("lossy-greedy:alpha=0.1").leaf_draft);
  EXPECT_TRUE(needs("lossy-greedy:alpha=0.1,bonus=rule").leaf_draft);
  EXPECT_TRUE(needs("bild").greedy);
  EXPECT_EQ(make_verification("bild", "exact").draft_until, 0.6);
  EXPECT_FALSE(needs("fly").draft_prob);
  EXPECT_TRUE(needs("relaxed").draft_prob);
  EXPECT_FALSE(needs("relaxed").raw_draft);
  EXPECT_FALSE(needs("relaxed").leaf_draft);
  EXPECT_TRUE(needs("relaxed:bonus=rule").leaf_draft);
  EXPECT_EQ(make_verification("fly:window=3", "exact").acceptance->min_depth(), 4);
  const auto is_distribution_of_prefix = [](const char* spec) {
    return make_verification(spec, "exact").acceptance->prefix_determined();
  };
  EXPECT_TRUE(is_distribution_of_prefix("exact"));
  EXPECT_TRUE(is_distribution_of_prefix("budget:total=1"));
  EXPECT_FALSE(is_distribution_of_prefix("chow:alpha=0,bonus=target"));
  EXPECT_FALSE(is_distribution_of_prefix("lossy-greedy:alpha=0"));
  EXPECT_FALSE(is_distribution_of_prefix("typical"));
  EXPECT_FALSE(is_distribution_of_prefix("bild"));
  EXPECT_FALSE(is_distribution_of_prefix("fly"));
  EXPECT_FALSE(is_distribution_of_prefix("relaxed"));
  EXPECT_TRUE(is_distribution_of_prefix("relaxed:bonus=rule"));
}

}  // namespace
}  // namespace outrider
