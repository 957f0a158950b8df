// SPDX-License-Identifier: Apache-2.0
// outrider bench --methods as its users see it: the files it writes, interrupted runs, and refused
// input. Models are made on the spot; the times of models this small mean nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/models/cli_models.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string bytes_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class BenchMethodsCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(path("prompts.jsonl"))
        << "{\"question_id\": 1, \"category\": \"news\", \"turns\": [\"one two\", \"three\"]}\n"
           "{\"question_id\": 2, \"category\": \"news\", \"turns\": [\"four\"]}\n"
           "{\"question_id\": 3, \"category\": \"code\", \"turns\": [\"five six\"]}\n";
  }

  std::string path(const char* name) const { return (directory_.path() / name).string(); }
  static std::string draft() { return "model:" + CliModels::get().draft(); }
  ProgramRun bench(const Words& more, const ProgramInput& input = {}) const {
    return bench_on(CliModels::get().target(), more, input);
  }
  ProgramRun bench_on(const std::string& model, const Words& more,
                      const ProgramInput& input = {}) const {
    Words words = {"bench",
                   "--model",
                   model,
                   "--threads",
                   "1",
                   "--prompts",
                   path("prompts.jsonl"),
                   "--methods",
                   draft() + "@chain:length=3,suffix@auto"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words, input);
  }
  json report(const char* name) const { return json::parse(bytes_of(path(name))); }

  TemporaryDirectory directory_;
};

TEST_F(BenchMethodsCommand, WritesTheSameInEveryForm) {
  const ProgramRun done =
      bench({"--max-tokens", "8", "--temperatures", "0,1", "--json", path("out.json"), "--csv",
             path("out.csv"), "--html", path("out.html")});
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.err, IsEmpty());
  EXPECT_THAT(done.out, AllOf(HasSubstr("speed-up"), HasSubstr("code"), HasSubstr("model:draft"),
                              HasSubstr("texts to go on with"), HasSubstr("not comparable")));
  const json object = report("out.json");
  EXPECT_EQ(object["complete"], true);
  EXPECT_EQ(object["settings"]["max_tokens"], 8);
  EXPECT_EQ(object["settings"]["model"]["files"][0]["path"], CliModels::get().target());
  EXPECT_EQ(object["rounds"].size(), 6U);
  EXPECT_EQ(object["figures"].size(), 18U);
  for (const json& figures : object["figures"]) {
    if (figures["promises_same_text"] == true) {
      EXPECT_EQ(figures["same_texts"], figures["prompts"]) << figures["method"];
    }
  }
  EXPECT_EQ(n_lines(bytes_of(path("out.csv"))), 19);
  EXPECT_THAT(bytes_of(path("out.html")), AllOf(HasSubstr("<svg"), HasSubstr("Temperature 1")));
}

TEST_F(BenchMethodsCommand, TakesPartOfThePromptsAndPrintsJson) {
  const ProgramRun done = bench({"--max-tokens", "4", "--limit", "2", "--json"});
  ASSERT_EQ(done.status, 0) << done.err;
  const json object = json::parse(done.out);
  ASSERT_EQ(object["prompts"].size(), 2U);
  EXPECT_EQ(object["prompts"][0]["category"], "news");
  EXPECT_EQ(object["prompts"][1]["category"], "code");
}

TEST_F(BenchMethodsCommand, AsksConversationsByTheModelsTemplate) {
  const std::string chatty = CliModels::get().chatty();
  const ProgramRun done = run_program({"bench", "--model", chatty, "--threads", "1", "--prompts",
                                       path("prompts.jsonl"), "--methods", "suffix", "--max-tokens",
                                       "4", "--limit", "1", "--json", path("chat.json")});
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("conversations by the model's chat template"));
  const json chat = report("chat.json");
  const ProgramRun raw = run_program({"bench", "--model", chatty, "--threads", "1", "--prompts",
                                      path("prompts.jsonl"), "--methods", "suffix", "--max-tokens",
                                      "4", "--limit", "1", "--raw", "--json", path("raw.json")});
  ASSERT_EQ(raw.status, 0) << raw.err;
  EXPECT_LT(report("raw.json")["rounds"][0]["samples"][0]["prompt_tokens"],
            chat["rounds"][0]["samples"][0]["prompt_tokens"]);
}

TEST_F(BenchMethodsCommand, GoesOnWhereItWasCutOff) {
  const Words flags = {"--max-tokens", "6", "--json", path("out.json")};
  ASSERT_EQ(bench(flags).status, 0);
  const std::string all = bytes_of(path("out.json.rounds.jsonl"));
  ASSERT_EQ(n_lines(all), 5);  // the head, passes and three rounds
  // As after a kill in the middle of the last line.
  const std::string cut = all.substr(0, all.size() - 9);
  std::ofstream(path("out.json.rounds.jsonl"), std::ios::binary) << cut;
  const json before = report("out.json");
  fs::remove(path("out.json"));
  ASSERT_EQ(bench(flags).status, 0);
  const json after = report("out.json");
  EXPECT_EQ(after["complete"], true);
  ASSERT_EQ(after["rounds"].size(), 3U);
  // Rounds that the file had are not measured again; the repeated ones have the same text.
  EXPECT_EQ(after["rounds"][0], before["rounds"][0]);
  EXPECT_EQ(after["passes"], before["passes"]);
  EXPECT_EQ(after["rounds"][2]["samples"][0]["ids_digest"],
            before["rounds"][2]["samples"][0]["ids_digest"]);

  const ProgramRun other = bench({"--max-tokens", "7", "--json", path("out.json")});
  expect_refused(other, 1, "run.max_tokens 7");
  // A complete run is reported again from its file.
  const ProgramRun again = bench(flags);
  EXPECT_EQ(again.status, 0);
  EXPECT_EQ(report("out.json")["rounds"], after["rounds"]);
}

TEST_F(BenchMethodsCommand, CtrlCLeavesAReport) {
  // Ctrl-C comes after the head, the passes and two rounds.
  const ProgramRun stopped =
      bench({"--max-tokens", "4", "--repeat", "1000000", "--json", path("out.json")},
            {.interrupt_after = std::chrono::minutes(5), .interrupt_when = [&](const ProgramRun&) {
               return n_lines(bytes_of(path("out.json.rounds.jsonl"))) >= 4;
             }});
  EXPECT_EQ(stopped.status, 130) << stopped.err;
  EXPECT_EQ(report("out.json")["complete"], false);
  EXPECT_THAT(stopped.out, HasSubstr("rounds are here"));
  EXPECT_THAT(stopped.err, HasSubstr("the same command goes on"));
}

TEST_F(BenchMethodsCommand, SaysWhichPromptsDoNotFit) {
  std::ofstream(path("prompts.jsonl"), std::ios::app)
      << "{\"question_id\": 4, \"category\": \"code\", \"turns\": [\"" << std::string(20'000, 'x')
      << "\"]}\n";
  const ProgramRun done = bench({"--max-tokens", "4"});
  EXPECT_EQ(done.status, 1);
  EXPECT_THAT(done.out, AllOf(HasSubstr("1 problem:"), HasSubstr("prompts 4: turn 1: ")));
}

TEST_F(BenchMethodsCommand, RefusesInOneLine) {
  const std::string target = CliModels::get().target();
  const auto with = [&](const Words& more) {
    Words words = {"bench", "--model", target};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  };
  const Words good = {"--methods", "suffix", "--prompts", path("prompts.jsonl")};
  const auto and_more = [&](const Words& more) {
    Words words = good;
    words.insert(words.end(), more.begin(), more.end());
    return with(words);
  };
  expect_refused(with({"--methods", "suffix"}), 2, "--prompts");
  expect_refused(with({"--methods", "", "--prompts", "x"}), 2, "--methods");
  expect_refused(with({"--methods", "parrot", "--prompts", "x"}), 2, "parrot");
  expect_refused(with({"--methods", "plain", "--prompts", path("prompts.jsonl")}), 2,
                 "beside plain");
  expect_refused(with({"--methods", "suffix", "--methods", "suffix", "--prompts", "x"}), 2,
                 "suffix twice");
  expect_refused(with({"--methods", "suffix", "--prompts", path("nowhere")}), 1, "nowhere");
  expect_refused(with({"--methods", "suffix", "--passes", "--prompts", "x"}), 2, "got several");
  expect_refused(with({"--passes", "--prompts", "x"}), 2, "--prompts: expected no such flag");
  expect_refused(with({"--passes", "--csv", "x"}), 2, "--csv: expected no such flag");
  expect_refused(with({"--passes", "--json", "x"}), 2, "no file with --passes");
  expect_refused(and_more({"--drafter", "suffix"}), 2, "--drafter: expected no such flag");
  expect_refused(and_more({"--rows", "4"}), 2, "--rows: expected no such flag");
  expect_refused(and_more({"--context", "4"}), 2, "--context: expected no such flag");
  expect_refused(and_more({"--tree", "chain:length=2"}), 2, "--tree: expected no such flag");
  expect_refused(and_more({"--temperatures", "0,-1"}), 2, "--temperatures");
  expect_refused(and_more({"--temperatures", "0,0"}), 2, "0 twice");
  expect_refused(and_more({"--limit", "0"}), 2, "--limit");
  expect_refused(and_more({"--json", path("prompts.jsonl")}), 1, "another file");
  expect_refused(and_more({"--json", path("a"), "--csv", path("a")}), 2, "two in one");
}

TEST_F(BenchMethodsCommand, HelpHasAnExample) {
  const ProgramRun help = run_program({"bench", "--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, AllOf(HasSubstr("outrider bench --methods"), HasSubstr("--temperatures"),
                              HasSubstr("--html")));
}

}  // namespace
}  // namespace outrider::test
