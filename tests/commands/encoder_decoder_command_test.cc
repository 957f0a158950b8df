// SPDX-License-Identifier: Apache-2.0
// The program on an encoder-decoder, a tiny T5 with a vocabulary of characters: the encoder's input
// on the command line and in tasks, and refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/goldens/golden_models.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

class EncoderDecoderCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(at("task.json"))
        << R"({"name": "toy", "data": {"format": "lines", "fields": ["en", "de"]},
               "instruction": "Translate. ", "prompt": "{de} in English:", "reference": "en",
               "metric": "chrf", "max_tokens": 12})";
    std::ofstream(at("en")) << "the hat\nto rest\nthere\n";
    std::ofstream(at("de")) << "dherthe\nto tother\nthe oth\n";
  }
  std::string at(const std::string& name) const { return (directory_.path() / name).string(); }
  static std::string model(const char* name) {
    return (golden_directory(name) / "model.gguf").string();
  }
  static ProgramRun generate(const Words& more) {
    Words words = {"generate",     "--model", model("t5_plain"), "--threads", "1",
                   "--max-tokens", "20",      "--ignore-eos",    "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }
  static json answer(const Words& more) {
    const ProgramRun run = generate(more);
    EXPECT_EQ(run.status, 0) << run.err;
    return json::parse(run.out);
  }
  ProgramRun eval(const Words& more, const char* name = "t5_plain") const {
    Words words = {"eval",          "--model", model(name), "--threads", "1",     "--task",
                   at("task.json"), "--data",  at("en"),    at("de"),    "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }
  static void expect_refused(const ProgramRun& run, int status, const std::string& what) {
    EXPECT_EQ(run.status, status) << run.err;
    EXPECT_THAT(run.out, IsEmpty());
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_THAT(run.err, HasSubstr(what));
  }

  TemporaryDirectory directory_;
};

TEST_F(EncoderDecoderCommand, GenerateHasAPromptForTheEncoder) {
  const json plain = answer({"--prompt", "the other"});
  EXPECT_EQ(plain["ids"].size(), 20u);
  EXPECT_EQ(answer({"--encoder-prompt", "the other"})["ids"], plain["ids"]);
  EXPECT_NE(answer({"--encoder-prompt", "to the"})["ids"], plain["ids"]);
  EXPECT_NE(answer({"--encoder-prompt", "the other", "--prompt", "to"})["ids"], plain["ids"]);
  // A drafter of the same kind reads the encoder's input, too.
  const json drafted = answer(
      {"--encoder-prompt", "the other", "--draft", model("t5_plain"), "--tree", "chain:length=4"});
  EXPECT_EQ(drafted["ids"], plain["ids"]);
  EXPECT_EQ(drafted["stats"]["acceptance_rate"], 1);
}

TEST_F(EncoderDecoderCommand, EvalAsksTheTaskOrATemplate) {
  const ProgramRun whole = eval({"--out", at("whole")});
  ASSERT_EQ(whole.status, 0) << whole.err;
  const ProgramRun line = eval({"--out", at("line"), "--encoder-prompt", "{de}"});
  ASSERT_EQ(line.status, 0) << line.err;
  const auto texts_of = [this](const char* name) {
    std::ifstream file(at(name));
    std::string record;
    std::getline(file, record);  // what was run
    std::vector<std::string> texts;
    while (std::getline(file, record)) texts.push_back(json::parse(record)["texts"][0]);
    return texts;
  };
  const auto expect_texts = [&](const char* name, const Words& prompts) {
    const std::vector<std::string> texts = texts_of(name);
    ASSERT_EQ(texts.size(), prompts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const ProgramRun alone =
          run_program({"generate", "--model", model("t5_plain"), "--threads", "1", "--max-tokens",
                       "12", "--json", "--encoder-prompt", prompts[i]});
      EXPECT_EQ(json::parse(alone.out)["text"], texts[i]) << prompts[i];
    }
  };
  expect_texts("line", {"dherthe", "to tother", "the oth"});
  expect_texts("whole", {"Translate. dherthe in English:", "Translate. to tother in English:",
                         "Translate. the oth in English:"});
  EXPECT_NE(texts_of("line"), texts_of("whole"));
  // Records of one setting are refused for the other.
  expect_refused(eval({"--out", at("whole"), "--encoder-prompt", "{de}"}), 1, "encoder_prompt");
}

TEST_F(EncoderDecoderCommand, FrontiersAreDrawnOfAPair) {
  const ProgramRun run =
      eval({"--frontier", "--draft", model("t5_plain"), "--encoder-prompt", "{de}", "--rules",
            "exact,token-v3:alpha=0.5", "--cascades", "token:chow:alpha=0.5,oracle:diff:alpha=0.1",
            "--temperatures", "0", "--lengths", "3", "--out", at("frontier")});
  ASSERT_EQ(run.status, 0) << run.err;
  const json report = json::parse(run.out);
  ASSERT_EQ(report["points"].size(), 4u);
  for (const json& point : report["points"]) {
    // The drafter is the target: under every rule, the texts are the target's own.
    EXPECT_EQ(point["quality"], point["plain_quality"]) << point["rule"];
    if (point["rule"] == "exact") {
      EXPECT_EQ(point["rejection"][0], 0);
    }
  }
}

TEST_F(EncoderDecoderCommand, RulesAreMeasuredAlongReferences) {
  const Words words = {"--teacher-forced", "--draft", model("t5_plain"), "--rules", "exact",
                       "--temperatures",   "1",       "--lengths",       "3"};
  Words with_template = words;
  with_template.insert(with_template.end(), {"--encoder-prompt", "{de}"});
  const ProgramRun line = eval(with_template);
  ASSERT_EQ(line.status, 0) << line.err;
  const ProgramRun whole = eval(words);
  ASSERT_EQ(whole.status, 0) << whole.err;
  EXPECT_NE(line.out, whole.out);
}

TEST_F(EncoderDecoderCommand, RefusesWhatDoesNotFit) {
  const auto on_decoder = [](Words words) {
    words.insert(words.begin(), {"generate", "--model", model("llama_plain"), "--threads", "1"});
    return run_program(words);
  };
  expect_refused(on_decoder({"--encoder-prompt", "a"}), 2, "an encoder-decoder (T5)");
  expect_refused(generate({"--encoder-prompt", ""}), 2, "--encoder-prompt");
  expect_refused(generate({"--encoder-prompt", "a", "--chat"}), 2, "--encoder-prompt");
  expect_refused(generate({"--encoder-prompt", "a", "--draft", model("llama_plain")}), 1,
                 "an encoder-decoder, as the target is");
  expect_refused(eval({"--encoder-prompt", "{de}"}, "llama_plain"), 2, "an encoder-decoder (T5)");
  expect_refused(eval({"--encoder-prompt", "{de}", "--chat"}), 2, "--chat");
  expect_refused(eval({"--encoder-prompt", "{de"}), 1, "--encoder-prompt");
  expect_refused(eval({"--encoder-prompt", "{fr}"}), 1, "fr");
}

}  // namespace
}  // namespace outrider::test
