// SPDX-License-Identifier: Apache-2.0
// outrider eval --frontier, the program itself, on a tiny pair: a report, a resumed run, and
// refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
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

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class EvalFrontier : public ::testing::Test {
 protected:
  void SetUp() override {
    write_tiny_pair(directory_.path());
    std::ofstream(path("task.json"))
        << R"({"name": "toy", "prompt": "{en} =", "reference": "de", "slice": "animal",
               "metric": "chrf", "max_tokens": 12})";
    std::ofstream(path("items.jsonl"))
        << "{\"en\": \"a cat\", \"de\": \"eine Katze\", \"animal\": \"small\"}\n"
           "{\"en\": \"a dog\", \"de\": \"ein Hund\", \"animal\": \"small\"}\n"
           "{\"en\": \"a cow\", \"de\": \"eine Kuh\", \"animal\": \"large\"}\n";
  }
  std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
  static std::string read(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  ProgramRun run(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {
        "eval",      "--frontier", "--model", path("target"),    "--draft", path("draft"),
        "--threads", "1",          "--task",  path("task.json"), "--data",  path("items.jsonl")};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }

  TemporaryDirectory directory_;
};

TEST_F(EvalFrontier, MeasuresSettingsBesideThePlainTarget) {
  const std::vector<std::string> words = {
      "--rules",        "exact,chow:alpha=-1|1,lossy-greedy:alpha=0.5",
      "--cascades",     "token:chow,oracle:diff",
      "--alphas",       "0.5",
      "--temperatures", "1,0",
      "--lengths",      "2,4",
      "--out",          path("report"),
      "--json"};
  const ProgramRun first = run(words);
  ASSERT_EQ(first.status, 0) << first.err;
  const json report = json::parse(first.out);
  EXPECT_EQ(report["score"], "chrf");
  // At temperature 1 three rules with two lengths and two cascades, at temperature 0 four and two;
  // each for all items and for two slices.
  const auto& points = report["points"];
  ASSERT_EQ(points.size(), (3U * 2 + 2 + 4 * 2 + 2) * 3);
  for (const json& point : points) {
    const std::string rule = point["rule"];
    SCOPED_TRACE(rule);
    EXPECT_GT(point["latency"][0], 0);
    if (rule == "exact" && point["temperature"] == 0) {
      EXPECT_EQ(point["quality"], point["plain_quality"]);  // the same texts
    }
    if (rule == "chow:alpha=1" && point["slice"] == "") {
      EXPECT_EQ(point["rejection"][0], 0);
      EXPECT_EQ(point["deferral"][0], 0);
      EXPECT_LT(point["passes"][0], 0.5);
    }
    if (rule == "oracle:diff,alpha=0.5") {
      EXPECT_EQ(point["sequential"], true);
      EXPECT_EQ(point["passes"][0], 1);
      EXPECT_TRUE(point["compute"][0].is_null());
    }
  }
  EXPECT_EQ(report["tables"]["latency"].size(), (2U + 2 + 3 + 2) * 3);

  // The same command again finds all of its records and asks nothing: even the times are the same.
  const ProgramRun again = run(words);
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(json::parse(again.out), report);
  EXPECT_EQ(json::parse(read(path("report/frontier.json"))), report);
  const std::string csv = read(path("report/frontier.csv"));
  EXPECT_EQ(static_cast<std::size_t>(std::count(csv.begin(), csv.end(), '\n')), points.size() + 1);

  // A run killed in the middle of a line loses that item only.
  const std::string records = path("report/records/chow-alpha=1-K2-T=1.jsonl");
  const std::string whole = read(records);
  std::ofstream(records, std::ios::trunc | std::ios::binary) << whole.substr(0, whole.size() - 9);
  const json mended = json::parse(run(words).out);
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(mended["points"][i]["quality"], points[i]["quality"]);
  }
}

// Timing of questions only changes how often plain decoding answers them.
TEST_F(EvalFrontier, TimesTheFirstQuestionsAndAsksPlainDecodingTheOthersOnce) {
  const auto command = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"--rules",        "exact,token-v3:alpha=0.3",
                                      "--temperatures", "1,0",
                                      "--lengths",      "2,4",
                                      "--out",          path(out),
                                      "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const ProgramRun all = run(command("all", {}));
  ASSERT_EQ(all.status, 0) << all.err;
  const ProgramRun one = run(command("one", {"--timed", "1"}));
  ASSERT_EQ(one.status, 0) << one.err;
  const json timed = json::parse(all.out)["points"];
  const json mostly_not = json::parse(one.out)["points"];
  ASSERT_EQ(mostly_not.size(), timed.size());
  for (std::size_t i = 0; i < timed.size(); ++i) {
    json a = timed[i];
    json b = mostly_not[i];
    SCOPED_TRACE(b.dump());
    // The second slice's only question is the third.
    EXPECT_EQ(b["latency"][0].is_null(), b["slice"] == "large");
    EXPECT_EQ(a["timed_items"], a["items"]);
    EXPECT_EQ(b["timed_items"], b["slice"] == "large" ? 0 : 1);
    for (const char* member : {"latency", "timed_items"}) {
      a.erase(member);
      b.erase(member);
    }
    EXPECT_EQ(a, b);
  }
  const auto n_lines = [&](const std::string& file) {
    const std::string lines = read(path("one/records/" + file));
    return std::count(lines.begin(), lines.end(), '\n');
  };
  EXPECT_EQ(n_lines("exact-K2-T=1.jsonl"), 1 + 3);  // what was run, and the questions
  EXPECT_EQ(n_lines("exact-K2-T=1.plain.jsonl"), 1 + 1);
  EXPECT_EQ(n_lines("exact-K4-T=1.plain.jsonl"), 1 + 1);
  EXPECT_EQ(n_lines("plain-T=1.jsonl"), 1 + 2);
  EXPECT_EQ(n_lines("plain-T=0.jsonl"), 1 + 2);

  // Again nothing is asked; with a larger --timed the missing times are measured.
  EXPECT_EQ(run(command("one", {"--timed", "1"})).out, one.out);
  const json more = json::parse(run(command("one", {"--timed", "3"})).out)["points"];
  for (const json& point : more) EXPECT_FALSE(point["latency"][0].is_null());
}

TEST_F(EvalFrontier, PrintsTheTable) {
  const ProgramRun done = run({"--rules", "exact", "--temperatures", "0", "--out", path("report")});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.out, AllOf(StartsWith("By latency\nT=0: chrf of the target alone"),
                              HasSubstr("By passes of the target"), HasSubstr("passes / "),
                              HasSubstr("T=0, large")));
}

TEST_F(EvalFrontier, RefusesInOneLine) {
  struct Case {
    std::vector<std::string> words;
    const char* problem;
  };
  const std::string out = path("report");
  for (const Case& bad :
       {Case{{"--out", out, "--rules", "cow"}, "expected one of exact, chow"},
        Case{{"--out", out, "--rules", "chow", "--alphas", "3"}, "from -1 to 1, got 3"},
        Case{{"--out", out, "--cascades", "token:diff"}, "chow"},
        Case{{"--out", out, "--cascades", "oracle"}, "a rule"},
        Case{{"--out", out, "--rules", "lossy-greedy"}, "temperature 0"},
        Case{{"--out", out, "--drafter", "none", "--rules", "chow"}, "--draft"},
        Case{{"--out", out, "--temperature", "1"}, "no such flag with --frontier"},
        Case{{"--out", out, "--text", "x"}, "no such flag with --frontier"},
        Case{{"--out", out, "--timed", "-1"}, "--timed"}, Case{{}, "--out DIR"}}) {
    const ProgramRun refused = run(bad.words);
    EXPECT_EQ(refused.status, 2) << bad.problem << refused.err;
    EXPECT_THAT(refused.out, IsEmpty());
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
    EXPECT_THAT(refused.err, AllOf(StartsWith("outrider: "), HasSubstr(bad.problem)));
  }
}

}  // namespace
}  // namespace outrider::test
