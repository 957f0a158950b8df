// SPDX-License-Identifier: Apache-2.0
// Drafters tried on the tiny pair: what is measured and what is left out, how it ends, and that the
// next run has what was learnt. Times mean nothing here.
#include "outrider/tune_drafters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "outrider/batch.h"
#include "outrider/error.h"
#include "tests/support/models/tiny_pair.h"
#include "tests/support/near.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using nlohmann::json;
using test::near;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class TuneDrafters : public ::testing::Test {
 protected:
  void SetUp() override {
    test::write_tiny_pair(folder_.path());
    model_ = Model::load(folder_.path() / "target", {.threads = 1});
    options_.drafters = {"suffix", draft()};
    options_.drafter_options = {.threads = 1};
    for (const char* const text : {"once upon", "a b c", "the end"}) {
      options_.prompts.push_back(
          {.set = "set", .id = text, .category = "c", .topic = "c", .turns = {text}});
    }
    options_.max_tokens = 12;
    options_.seconds = 1e-9;  // just what is guaranteed
  }

  std::string draft() const { return "model:" + (folder_.path() / "draft").string(); }
  json known() const {
    std::ifstream stream(folder_.path() / "profile.json");
    return json::parse(stream);
  }
  static double n_judged(const json& drafter) {
    double n = 0;
    for (const char* const dist : {"greedy", "drawn"}) {
      for (const json& depth : drafter[dist]["depths"]) n += depth[0].get<double>();
    }
    return n;
  }

  test::TemporaryDirectory folder_;
  std::shared_ptr<const Model> model_;
  TuneOptions options_;
};

TEST_F(TuneDrafters, MeasuresWhatItPromises) {
  const Tuning tuning = tune_drafters(model_, options_);
  EXPECT_FALSE(tuning.cancelled);
  EXPECT_THAT(tuning.problems(), IsEmpty());
  EXPECT_FALSE(tuning.profile_written);  // none was requested
  // Two prompts at two temperatures.
  ASSERT_THAT(tuning.drafters.rounds, SizeIs(4));
  EXPECT_THAT(tuning.drafters.rounds[0].samples, SizeIs(3));
  EXPECT_GE(tuning.drafters.passes.value().passes.size(), 8U);
  ASSERT_TRUE(tuning.shapes);
  ASSERT_THAT(tuning.shapes->rounds, SizeIs(4));
  const std::vector<TunedMethod> methods = tuning.methods();
  const std::string best = tuning.shapes->options.methods.back().speculation.drafter;
  EXPECT_EQ(methods.size(), 2U * (2 + 4));  // three chains and a tree
  std::multiset<std::string> trees;
  for (const TunedMethod& method : methods) {
    EXPECT_EQ(method.n_prompts, 2);
    EXPECT_GT(method.over_plain.value, 0);
    EXPECT_GE(method.tau, 1);
    EXPECT_FALSE(method.differs);
    EXPECT_EQ(std::isfinite(method.over_auto.value), !method.tree.empty());
    trees.insert(method.tree);
    if (method.tree.empty()) continue;
    EXPECT_EQ(method.drafter, best);
    EXPECT_LE(method.over_auto.low, method.over_auto.value);
    EXPECT_GE(method.over_auto.high, method.over_auto.value);
  }
  EXPECT_EQ(trees.count("chain:length=4"), 2U);
  EXPECT_EQ(trees.count(best == "suffix" ? "own" : "widths:2,2,1"), 2U);
  // Two prompts are never enough.
  EXPECT_EQ(recommend(methods, 0).finding, Finding::not_certain);
}

// The ratio to the drafter with planned depths is that of both seconds per token.
TEST_F(TuneDrafters, SetsShapesBesideWhatPays) {
  options_.temperatures = {0};
  const Tuning tuning = tune_drafters(model_, options_);
  const MethodComparison& shapes = tuning.shapes.value();
  ASSERT_THAT(shapes.rounds, SizeIs(2));
  for (const TunedMethod& method : tuning.methods()) {
    if (method.tree != "chain:length=2") continue;
    double planned = 0;
    double fixed = 0;
    for (const ComparedRound& round : shapes.rounds) {  // at temperature 0 all texts are equal
      planned += round.samples[1].decode_seconds;
      fixed += round.samples[2].decode_seconds;
    }
    EXPECT_TRUE(near(method.over_auto.value, planned / fixed, 1e-12));
    return;
  }
  FAIL() << "no chain of two";
}

// A drafter measured here starts with what was learnt, in a batch that has run nothing.
TEST_F(TuneDrafters, WhatWasLearntIsThereForTheNextRun) {
  options_.profile = folder_.path() / "profile.json";
  const Tuning tuning = tune_drafters(model_, options_);
  EXPECT_TRUE(tuning.profile_written) << tuning.profile_problem;
  const json learnt = known();
  ASSERT_THAT(learnt["drafters"], SizeIs(2));

  for (const std::string& drafter : options_.drafters) {
    Batch batch(model_, {&drafter, 1}, {.threads = 1});
    EXPECT_FALSE(batch.has_measured_passes());
    batch.load_drafting_profile(options_.profile);
    EXPECT_TRUE(batch.has_measured_passes());
    std::filesystem::remove(folder_.path() / "again.json");
    batch.save_drafting_profile(folder_.path() / "again.json");
    std::ifstream stream(folder_.path() / "again.json");
    const json again = json::parse(stream);
    EXPECT_EQ(again["passes"], learnt["passes"]);
    ASSERT_THAT(again["drafters"], SizeIs(1));
    EXPECT_THAT(learnt["drafters"], Contains(again["drafters"][0]));
    EXPECT_EQ(again["drafters"][0]["drafter"], drafter);
    EXPECT_GT(n_judged(again["drafters"][0]), 0);
  }

  // Another drafter of the model leaves their data unchanged.
  options_.drafters = {"ngram"};
  options_.temperatures = {0};
  ASSERT_TRUE(tune_drafters(model_, options_).profile_written);
  const json more = known();
  ASSERT_THAT(more["drafters"], SizeIs(3));
  EXPECT_EQ(more["drafters"][0]["drafter"], "ngram");  // the most recent one
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(more["drafters"][i + 1]["greedy"], learnt["drafters"][i]["greedy"]);
  }
}

TEST_F(TuneDrafters, LeavesOutWhatDoesNotLoad) {
  options_.temperatures = {0};
  options_.drafters.push_back("model:" + (folder_.path() / "nowhere").string());
  const Tuning tuning = tune_drafters(model_, options_);
  EXPECT_THAT(tuning.left_out, ElementsAre(HasSubstr("nowhere: [")));
  EXPECT_THAT(tuning.drafters.options.methods, SizeIs(3));
  options_.drafters = {options_.drafters.back()};
  EXPECT_THROW(tune_drafters(model_, options_), Error);
}

// Results so far are available whenever it ends.
TEST_F(TuneDrafters, EndsWhenItIsCancelled) {
  options_.seconds = 1e6;
  options_.profile = folder_.path() / "profile.json";
  std::atomic<bool> cancel{false};
  options_.cancel = &cancel;
  int n_seen = 0;
  options_.progress = [&](std::string_view step, double) {
    if (step.starts_with("c ") && ++n_seen > 10) cancel = true;
  };
  const Tuning tuning = tune_drafters(model_, options_);
  EXPECT_TRUE(tuning.cancelled);
  EXPECT_GE(tuning.drafters.rounds.size(), 3U);  // three steps each
  EXPECT_FALSE(tuning.shapes);
  EXPECT_FALSE(tuning.methods().empty());
  EXPECT_TRUE(tuning.profile_written);
  EXPECT_THAT(known()["drafters"], SizeIs(2));

  options_.progress = [&](std::string_view step, double) {
    if (step.starts_with("what passes cost")) cancel = true;
  };
  cancel = false;
  const Tuning early = tune_drafters(model_, options_);
  EXPECT_TRUE(early.cancelled);
  EXPECT_THAT(early.methods(), IsEmpty());
}

// Prompts that do not fit are reported, and not tried again.
TEST_F(TuneDrafters, PassesOverPromptsThatDoNotFit) {
  options_.temperatures = {0};
  options_.prompts[0].turns = {std::string(100'000, 'x')};
  const Tuning tuning = tune_drafters(model_, options_);
  EXPECT_THAT(tuning.problems(), Contains(HasSubstr("in a context of")));
  EXPECT_THAT(tuning.drafters.rounds, SizeIs(3));  // that one once, and the two that fit
  EXPECT_EQ(tuning.methods().front().n_prompts, 2);

  options_.prompts.resize(1);
  options_.seconds = 1e6;
  EXPECT_THAT(tune_drafters(model_, options_).methods(), IsEmpty());
}

TEST_F(TuneDrafters, SaysHowLongMorePromptsWouldTake) {
  Tuning tuning;
  tuning.drafters.options.prompts = options_.prompts;
  tuning.drafters.options.temperatures = {0, 1};
  tuning.drafters_half = {.begin = 5, .rounds = 12};
  ComparedRound round;
  round.samples.resize(2);
  tuning.drafters.rounds.assign(4, round);
  TunedMethod planned;
  TunedMethod fixed;
  fixed.tree = "chain:length=2";
  EXPECT_DOUBLE_EQ(tuning.seconds_for(planned, 3), 2 * (5 + 3 * 6));
  EXPECT_TRUE(std::isnan(tuning.seconds_for(planned, 4)));  // there are three
  EXPECT_TRUE(std::isnan(tuning.seconds_for(planned, 0)));
  EXPECT_TRUE(std::isnan(tuning.seconds_for(fixed, 3)));
  // Shapes get the other half, where rounds take their own time.
  tuning.shapes = tuning.drafters;
  tuning.shapes_half = {.begin = 1, .rounds = 40};
  EXPECT_DOUBLE_EQ(tuning.seconds_for(fixed, 3), 2 * (1 + 3 * 20));
  EXPECT_DOUBLE_EQ(tuning.seconds_for(planned, 3), 2 * (5 + 3 * 6));
  tuning.drafters.rounds.clear();
  EXPECT_TRUE(std::isnan(tuning.seconds_for(planned, 3)));
}

TEST_F(TuneDrafters, RefusesWhatCannotBeMeant) {
  const auto refused = [this](auto change) {
    TuneOptions options = options_;
    change(options);
    EXPECT_THROW(check_tuning(options), UsageError);
  };
  EXPECT_NO_THROW(check_tuning(options_));
  refused([](TuneOptions& options) { options.drafters.clear(); });
  refused([](TuneOptions& options) { options.drafters = {"none"}; });
  refused([](TuneOptions& options) { options.drafters = {"parrot"}; });
  refused([](TuneOptions& options) { options.drafters = {"suffix", "suffix"}; });
  refused([](TuneOptions& options) { options.seconds = 0; });
  refused([](TuneOptions& options) { options.seconds = std::nan(""); });
  refused([](TuneOptions& options) { options.temperatures = {-1}; });
  refused([](TuneOptions& options) { options.max_tokens = 1; });
}

TEST_F(TuneDrafters, JsonHasAllOfIt) {
  options_.temperatures = {0};
  const Tuning tuning = tune_drafters(model_, options_);
  const json object = json::parse(tuning_json(tuning));
  EXPECT_EQ(object["format"], "outrider-tuning");
  EXPECT_EQ(object["complete"], true);
  EXPECT_EQ(object["methods"].size(), tuning.methods().size());
  EXPECT_EQ(object["drafters"]["rounds"].size(), tuning.drafters.rounds.size());
  EXPECT_FALSE(object["drafters"]["passes"]["passes"].empty());
  EXPECT_EQ(object["shapes"]["rounds"].size(), tuning.shapes->rounds.size());
  ASSERT_THAT(object["advice"], SizeIs(1));
  EXPECT_EQ(object["advice"][0]["finding"], "not certain");
  EXPECT_EQ(object["advice"][0]["flags"], "");
  EXPECT_TRUE(object["methods"][0]["over_auto"]["value"].is_null());
}

// Heads in subfolders of the model, recognised by their config.json.
TEST_F(TuneDrafters, FindsHeadsInTheModelsFolder) {
  EXPECT_THAT(drafters_to_try(*model_), ElementsAre("suffix", "ngram", "lookahead"));
  const std::filesystem::path folder = folder_.path() / "target";
  const auto write = [&folder](const char* name, const std::string& config) {
    std::filesystem::create_directories(folder / name);
    std::ofstream(folder / name / "config.json") << config;
  };
  write("a,head", R"({"eagle_version": 1})");
  write("b", R"({"medusa_num_heads": 4})");
  write("c", R"({"architectures": ["LlamaForCausalLMEagle3"]})");
  write("d", R"({"num_nextn_predict_layers": 1})");
  write("e", R"({"architectures": ["LlamaForCausalLM"]})");
  write("f", std::string(100'000, '['));
  write("g", "[1]");
  std::filesystem::create_directories(folder / "h");
  const std::string at = folder.string();
  EXPECT_THAT(drafters_to_try(*model_),
              ElementsAre("suffix", "ngram", "lookahead", "eagle:" + at + "/a\\,head",
                          "medusa:" + at + "/b", "eagle:" + at + "/c", "mtp:" + at + "/d"));
}

TEST(TuningPrompts, ComeInTurn) {
  const auto prompt = [](const char* id, const char* category) {
    return ComparedPrompt{
        .set = "set", .id = id, .category = category, .topic = category, .turns = {"A"}};
  };
  std::vector<std::string> ids;
  for (const ComparedPrompt& one :
       in_turn({prompt("1", "x"), prompt("2", "x"), prompt("3", "y"), prompt("4", "x"),
                prompt("5", "z"), prompt("6", "y")})) {
    ids.push_back(one.id);
  }
  EXPECT_THAT(ids, ElementsAre("1", "3", "5", "2", "6", "4"));
}

TEST_F(TuneDrafters, BuiltInPromptsAreOfEightKinds) {
  std::set<std::string> kinds;
  std::set<std::string> texts;
  for (const ComparedPrompt& prompt : tuning_prompts(*model_)) {
    kinds.insert(prompt.category);
    texts.insert(prompt.turns.front());
  }
  EXPECT_THAT(kinds, SizeIs(8));
  // For a chat model the texts differ.
  std::ofstream(folder_.path() / "target" / "tokenizer_config.json")
      << R"({"chat_template": "{{ messages[0]['content'] }}"})";
  const auto chatty = Model::load(folder_.path() / "target", {.threads = 1});
  for (const ComparedPrompt& prompt : tuning_prompts(*chatty)) {
    EXPECT_TRUE(texts.insert(prompt.turns.front()).second) << prompt.id;
    EXPECT_TRUE(kinds.contains(prompt.category));
  }
}

TEST_F(TuneDrafters, TextsAreGoneOnWith) {
  test::write_tiny_texts(folder_.path() / "text.txt");
  const std::vector<ComparedPrompt> prompts = tuning_prompts(
      *model_,
      {.paths = {folder_.path() / "text.txt"}, .separator = "|", .count = 3, .prompt_tokens = 5});
  ASSERT_THAT(prompts, SizeIs(3));
  std::ifstream stream(folder_.path() / "text.txt");
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  for (const ComparedPrompt& prompt : prompts) {
    EXPECT_FALSE(prompt.turns.front().empty());
    EXPECT_THAT(text, HasSubstr(prompt.turns.front()));
  }
}

}  // namespace
}  // namespace outrider
