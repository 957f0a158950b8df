// SPDX-License-Identifier: Apache-2.0
// outrider eval --teacher-forced, the program itself: the files of a report, and refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/models/tiny_pair.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class EvalTeacherForced : public ::testing::Test {
 protected:
  void SetUp() override {
    write_tiny_pair(directory_.path());
    std::ofstream(path("text")) << "once upon a time##there was a king##who had a daughter## ";
  }
  std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
  ProgramRun run(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {
        "eval", "--teacher-forced", "--model", path("target"), "--threads",
        "1",    "--separator",      "##",      "--text",       path("text")};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }
  ProgramRun run_pair(std::vector<std::string> more) const {
    more.insert(more.end(), {"--draft", path("draft")});
    return run(more);
  }
  static std::string read(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  TemporaryDirectory directory_;
};

TEST_F(EvalTeacherForced, WritesOneReportInThreeForms) {
  const ProgramRun done =
      run_pair({"--rules", "exact,token-v3,lossy:beta=auto", "--alphas", "0,0.5", "--temperatures",
                "1,0", "--lengths", "2,4", "--out", path("report"), "--json"});
  ASSERT_EQ(done.status, 0) << done.err;
  const auto json = nlohmann::json::parse(done.out);
  EXPECT_EQ(json["texts"], 3);
  EXPECT_EQ(json["lengths"], (std::vector<int>{2, 4}));
  ASSERT_EQ(json["settings"].size(), 10U);
  const auto& exact = json["settings"][0];
  EXPECT_EQ(exact["rule"], "exact");
  EXPECT_EQ(exact["rule_kl"][0], 0);
  EXPECT_GT(exact["rejection"][0], 0);
  EXPECT_GE(exact["tau_4"][0], exact["tau_2"][0]);
  EXPECT_EQ(json["settings"][1]["alpha"], 0);

  EXPECT_EQ(nlohmann::json::parse(read(path("report/teacher-forced.json"))), json);
  const std::string csv = read(path("report/teacher-forced.csv"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 11);
  // Without gnuplot the pictures are missing, and the output says so.
  for (const char* picture : {"teacher-forced-rejection-T=1.svg", "teacher-forced-tau-T=0.svg"}) {
    const bool drawn = read(path("report") + "/" + picture).find("<svg") != std::string::npos;
    EXPECT_NE(drawn, done.err.find(picture) != std::string::npos) << done.err;
  }
}

TEST_F(EvalTeacherForced, PrintsATableWithoutAReport) {
  const ProgramRun done = run_pair({"--rules", "exact,chow:alpha=1"});
  EXPECT_EQ(done.status, 0);
  EXPECT_THAT(done.err, IsEmpty());
  EXPECT_THAT(done.out, AllOf(StartsWith("T=1\n"), HasSubstr("chow:alpha=1"), HasSubstr("tau_5")));
}

// A task's references after their prompts: the prompts' tokens are read and not judged.
TEST_F(EvalTeacherForced, ReadsATasksReferences) {
  std::ofstream(path("task.json")) << R"({"name": "words", "prompt": "Say {word}:",
      "reference": "said", "metric": "squad"})";
  std::ofstream(path("data.jsonl")) << R"({"word": "one", "said": "once upon"})"
                                    << "\n"
                                    << R"({"word": "two", "said": ["a king", "more"]})"
                                    << "\n";
  const auto on_task = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {
        "eval",   "--teacher-forced", "--model", path("target"),     "--threads", "1",
        "--task", path("task.json"),  "--data",  path("data.jsonl"), "--draft",   path("draft")};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  };
  const ProgramRun done = on_task({"--rules", "exact", "--json"});
  ASSERT_EQ(done.status, 0) << done.err;
  const auto json = nlohmann::json::parse(done.out);
  EXPECT_EQ(json["texts"], 2);
  // The tokens of " once upon" and " a king", one per character or fewer.
  EXPECT_GE(json["tokens"], 4);
  EXPECT_LE(json["tokens"], 17);

  EXPECT_THAT(on_task({"--text", path("text")}).err, HasSubstr("expected texts or a task"));
  EXPECT_THAT(on_task({"--texts", "1"}).err,
              HasSubstr("no such flag with --teacher-forced --task"));
  EXPECT_THAT(run_pair({"--limit", "1"}).err, HasSubstr("no such flag with --teacher-forced"));
  std::ofstream(path("data.jsonl"), std::ios::app) << R"({"word": "three"})"
                                                   << "\n";
  const ProgramRun partly = on_task({"--rules", "exact", "--json"});
  EXPECT_EQ(partly.status, 1);
  EXPECT_THAT(partly.err, HasSubstr("line 3"));
  EXPECT_EQ(nlohmann::json::parse(partly.out)["settings"], json["settings"]);
  std::ofstream(path("task.json")) << R"({"name": "words", "prompt": "{word}",
      "metric": "perplexity"})";
  EXPECT_THAT(on_task({}).err, HasSubstr("a task with references"));
}

TEST_F(EvalTeacherForced, AValueGivenTwiceCountsOnce) {
  const ProgramRun done = run_pair({"--rules", "exact", "--lengths", "5,2,5", "--temperatures",
                                    "1,0,1", "--top-ps", "1,1", "--json"});
  ASSERT_EQ(done.status, 0) << done.err;
  const auto json = nlohmann::json::parse(done.out);
  EXPECT_EQ(json["lengths"], (std::vector<int>{5, 2}));
  EXPECT_EQ(json["settings"].size(), 2U);
}

TEST_F(EvalTeacherForced, AFolderThatCannotBeMadeIsKnownBeforeAModelIsLoaded) {
  std::ofstream(path("file")) << "x";
  const ProgramRun refused =
      run_program({"eval", "--teacher-forced", "--model", path("nowhere"), "--draft",
                   path("nowhere"), "--text", path("text"), "--out", path("file")});
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("write report"));
}

TEST_F(EvalTeacherForced, RefusesInOneLine) {
  struct Case {
    std::vector<std::string> words;
    const char* problem;
  };
  for (const Case& bad :
       {Case{{"--rules", "cow"}, "expected one of exact, chow"},
        Case{{"--alphas", "2"}, "alpha: expected a number from -1 to 1, got 2"},
        Case{{"--rules", "typical"}, "got typical, which judges whole drafts"},
        Case{{"--rules", ""}, "rules: expected at least one, got none"},
        Case{{"--lengths", "256"}, "lengths: expected drafts of 1 to 255, got 256"},
        Case{{"--rules", "bild"}, "got bild, which judges whole drafts"},
        Case{{"--rules", "lossy-greedy"}, "temperature 0"},
        Case{{"--temperatures", "-1"}, "--temperatures"},
        Case{{"--temperatures", "1,,2"}, "--temperatures"}, Case{{"--window", "1000000"}, "window"},
        Case{{"--rule", "chow:alpha=1"}, "--rule: expected no such flag with --teacher-forced"},
        Case{{"--lengths", "0"}, "--lengths"}}) {
    const ProgramRun refused = run_pair(bad.words);
    EXPECT_EQ(refused.status, 2) << bad.problem;
    EXPECT_THAT(refused.out, IsEmpty());
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
    EXPECT_THAT(refused.err, AllOf(StartsWith("outrider: "), HasSubstr(bad.problem)));
  }
  EXPECT_THAT(run({}).err, HasSubstr("--draft"));
  EXPECT_THAT(run({"--drafter", "none"}).err, HasSubstr("--draft"));
  const ProgramRun changing =
      run({"--drafter", "model:" + path("draft") + ",updates=" + path("x")});
  EXPECT_EQ(changing.status, 2);
  EXPECT_THAT(changing.err, HasSubstr("expected one model for all texts, got updates="));
  const ProgramRun foreign = run({"--drafter", "model:" + path("draft") + ",vocabulary=shared"});
  EXPECT_EQ(foreign.status, 2);
  EXPECT_THAT(foreign.err, HasSubstr("a drafter of the target's vocabulary"));
  std::ofstream(path("text")) << "caf\xe9 ## more";
  EXPECT_THAT(run_pair({}).err, HasSubstr("expected UTF-8 text, got byte 0xE9 in line 1"));
  std::ofstream(path("text")) << " ## ";
  EXPECT_THAT(run_pair({}).err, HasSubstr("nothing but blanks"));
}

}  // namespace
}  // namespace outrider::test
