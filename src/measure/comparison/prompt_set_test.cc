// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "outrider/compare_methods.h"
#include "outrider/error.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReadPromptSet : public ::testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& text) const {
    const fs::path file = directory_.path() / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    return file;
  }
  std::string problem_of(const std::string& text) const {
    try {
      read_prompt_set(write("bad.jsonl", text));
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  }

  test::TemporaryDirectory directory_;
};

TEST_F(ReadPromptSet, TakesTheFormOfMtBench) {
  const PromptSet set = read_prompt_set(write(
      "mt_bench/question.jsonl",
      "{\"question_id\": 81, \"category\": \"writing\", \"turns\": [\"One\", \"Two \\u00e9\"]}\r\n"
      "\n"
      "{\"question_id\": \"x7\", \"category\": \"math\", \"turns\": [\"Three\"], \"reference\": "
      "[1]}"));
  EXPECT_EQ(set.name, "mt_bench");
  ASSERT_EQ(set.prompts.size(), 2U);
  EXPECT_EQ(set.prompts[0].id, "81");
  EXPECT_EQ(set.prompts[0].set, "mt_bench");
  EXPECT_EQ(set.prompts[0].category, "writing");
  EXPECT_THAT(set.prompts[0].turns, ElementsAre("One", "Two é"));
  EXPECT_EQ(set.prompts[1].id, "x7");
}

TEST_F(ReadPromptSet, NamesWhatTheFileLeavesOut) {
  const PromptSet set = read_prompt_set(
      write("alpaca_question.jsonl",
            "{\"turns\": [\"A\"]}\n{\"category\": \"\", \"question_id\": null, \"turns\": "
            "[\"B\"]}\n"));
  EXPECT_EQ(set.name, "alpaca");
  EXPECT_EQ(set.prompts[0].id, "1");
  EXPECT_EQ(set.prompts[0].category, "alpaca");
  EXPECT_EQ(set.prompts[1].id, "2");
  EXPECT_EQ(set.prompts[1].category, "alpaca");
}

TEST_F(ReadPromptSet, TellsSetsApart) {
  const std::string line = "{\"category\": \"qa\", \"turns\": [\"A\"]}\n";
  const PromptSet a = read_prompt_set(write("a.jsonl", line));
  const PromptSet b = read_prompt_set(write("b.jsonl", line + "{\"turns\": [\"B\"]}"));
  EXPECT_NE(a.digest, b.digest);
  const std::vector<ComparedPrompt> one = join_prompt_sets({{a}});
  EXPECT_EQ(one[0].category, "qa");
  const std::vector<ComparedPrompt> both = join_prompt_sets({{a, b}});
  ASSERT_EQ(both.size(), 3U);
  EXPECT_EQ(both[0].category, "a: qa");
  EXPECT_EQ(both[1].category, "b: qa");
  EXPECT_EQ(both[2].category, "b");
  EXPECT_THROW(join_prompt_sets({{a, a}}), UsageError);
}

TEST_F(ReadPromptSet, RefusesByTheLine) {
  EXPECT_THAT(problem_of(""), HasSubstr("at least one"));
  EXPECT_THAT(problem_of("\n\n"), HasSubstr("at least one"));
  EXPECT_THAT(problem_of("{\"turns\": [\"A\"]}\n{\"turns\""),
              AllOf(HasSubstr("line 2"), HasSubstr("malformed JSON")));
  EXPECT_THAT(problem_of("[1]"), HasSubstr("got array"));
  EXPECT_THAT(problem_of("{\"prompt\": \"A\"}"), HasSubstr("no such member"));
  EXPECT_THAT(problem_of("{\"turns\": \"A\"}"), HasSubstr("got string"));
  EXPECT_THAT(problem_of("{\"turns\": []}"), HasSubstr("an empty list"));
  EXPECT_THAT(problem_of("{\"turns\": [\"A\", 3]}"), HasSubstr("number among them"));
  EXPECT_THAT(problem_of("{\"turns\": [\"\"]}"), HasSubstr("an empty text"));
  EXPECT_THAT(problem_of("{\"turns\": [\"A\"], \"category\": 3}"), HasSubstr("\"category\""));
  EXPECT_THAT(problem_of("{\"turns\": [\"A\"], \"question_id\": []}"),
              HasSubstr("\"question_id\""));
  EXPECT_THAT(problem_of("{\"turns\": [\"A\"], \"question_id\": 1}\n"
                         "{\"turns\": [\"A\"], \"question_id\": 1}"),
              HasSubstr("1 again"));
  EXPECT_THAT(problem_of("{\"turns\": [\"\xff\"]}"), HasSubstr("malformed JSON"));
  EXPECT_THAT(problem_of("{\"turns\": " + std::string(100'000, '[')), HasSubstr("malformed JSON"));
  EXPECT_THROW(read_prompt_set(directory_.path() / "nowhere.jsonl"), Error);
}

// The thirteen categories with that many prompts each.
std::string spec_bench(const std::vector<std::pair<std::string, int>>& counts) {
  std::string text;
  for (const auto& [topic, n] : counts) {
    for (int i = 0; i < n; ++i) {
      text += "{\"category\": \"" + topic + "\", \"turns\": [\"A\"]}\n";
    }
  }
  return text;
}

const std::vector<std::pair<std::string, int>> kThirteen = {
    {"writing", 2},     {"roleplay", 1},      {"reasoning", 1}, {"math", 1},
    {"coding", 1},      {"extraction", 1},    {"stem", 1},      {"humanities", 1},
    {"translation", 4}, {"summarization", 4}, {"qa", 4},        {"math_reasoning", 4},
    {"rag", 4}};

TEST_F(ReadPromptSet, ReportsSpecBenchByItsSixKinds) {
  const PromptSet set = read_prompt_set(write("spec_bench/question.jsonl", spec_bench(kThirteen)));
  std::map<std::string, int> counts;
  for (const ComparedPrompt& prompt : set.prompts) ++counts[prompt.category];
  EXPECT_EQ(counts.size(), 6U);
  EXPECT_EQ(counts["multi-turn conversation"], 9);
  EXPECT_EQ(set.prompts[0].topic, "writing");
  // Other sets share names: SPEED-Bench has one more category, MT-bench eight of them.
  auto more = kThirteen;
  more.emplace_back("multilingual", 1);
  EXPECT_EQ(read_prompt_set(write("speed.jsonl", spec_bench(more))).prompts[0].category, "writing");
  const std::vector<std::pair<std::string, int>> eight(kThirteen.begin(), kThirteen.begin() + 8);
  EXPECT_EQ(read_prompt_set(write("mt.jsonl", spec_bench(eight))).prompts[0].category, "writing");
}

TEST(SpreadOverCategories, TakesTheSameNumberOfEach) {
  std::vector<ComparedPrompt> prompts;
  const auto add = [&prompts](const std::string& category, int n) {
    for (int i = 0; i < n; ++i) {
      prompts.push_back({.set = "s",
                         .id = category + std::to_string(i),
                         .category = category,
                         .topic = category,
                         .turns = {"A"}});
    }
  };
  add("a", 10);
  add("b", 1);
  add("c", 4);
  const auto ids = [&prompts](std::size_t limit) {
    std::vector<std::string> ids;
    for (const ComparedPrompt& prompt : spread_over_categories(prompts, limit)) {
      ids.push_back(prompt.id);
    }
    return ids;
  };
  EXPECT_THAT(ids(3), ElementsAre("a5", "b0", "c2"));
  EXPECT_THAT(ids(2), ElementsAre("a5", "b0"));
  EXPECT_THAT(ids(6), ElementsAre("a1", "a5", "a8", "b0", "c1", "c3"));
  EXPECT_EQ(ids(15).size(), 15U);
  EXPECT_EQ(ids(99).size(), 15U);
  const std::vector<std::string> most = ids(14);
  EXPECT_EQ(std::set<std::string>(most.begin(), most.end()).size(), 14U);
}

}  // namespace
}  // namespace outrider
