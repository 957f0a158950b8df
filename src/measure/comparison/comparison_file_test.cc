// SPDX-License-Identifier: Apache-2.0
// The file from which a comparison continues.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "outrider/error.h"
#include "outrider/method_report.h"
#include "tests/support/made_comparison.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using test::made_comparison;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ComparisonFiles : public ::testing::Test {
 protected:
  // The state before a run.
  static MethodComparison empty() {
    MethodComparison comparison = made_comparison();
    comparison.rounds.clear();
    comparison.passes.reset();
    return comparison;
  }
  void write(std::size_t n_rounds) const {
    MethodComparison comparison = empty();
    ComparisonFile file(path_, comparison);
    const MethodComparison made = made_comparison();
    file.append_passes(made.passes.value(), made.pass_context);
    for (std::size_t i = 0; i < n_rounds; ++i) file.append(made.rounds[i]);
  }
  std::string problem_of(MethodComparison comparison) const {
    try {
      const ComparisonFile file(path_, comparison);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  }
  std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  test::TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_.path() / "rounds.jsonl";
};

TEST_F(ComparisonFiles, GiveBackWhatWasWritten) {
  write(2);
  MethodComparison read = empty();
  const ComparisonFile file(path_, read);
  EXPECT_TRUE(read.is_complete());
  EXPECT_EQ(read.pass_context, 40);
  // Everything that reports contain is restored: they have the same bytes.
  const MethodComparison made = made_comparison();
  EXPECT_EQ(comparison_json(read, method_figures(read)),
            comparison_json(made, method_figures(made)));
  EXPECT_EQ(comparison_html(read, method_figures(read)),
            comparison_html(made, method_figures(made)));
}

TEST_F(ComparisonFiles, GoOnBehindARunThatWasKilled) {
  write(1);
  const std::string whole = bytes();
  std::ofstream(path_, std::ios::binary | std::ios::app) << "{\"round\": {\"prompt\": 1, \"tem";
  MethodComparison comparison = empty();
  ComparisonFile file(path_, comparison);
  ASSERT_EQ(comparison.rounds.size(), 1U);
  EXPECT_FALSE(comparison.is_complete());
  EXPECT_EQ(bytes(), whole);
  file.append(made_comparison().rounds[1]);
  EXPECT_THAT(problem_of(empty()), HasSubstr("no other process"));
}

TEST_F(ComparisonFiles, KeepRoundsWithProblems) {
  MethodComparison comparison = empty();
  {
    ComparisonFile file(path_, comparison);
    file.append(
        {.prompt = 1, .temperature = 0, .repeat = 0, .samples = {}, .problem = "too long \xff"});
  }
  MethodComparison read = empty();
  const ComparisonFile file(path_, read);
  EXPECT_THAT(read.rounds.at(0).problem, HasSubstr("too long"));
}

TEST_F(ComparisonFiles, RefuseOtherSettings) {
  write(1);
  const std::string before = bytes();
  MethodComparison other = empty();
  other.options.max_tokens = 7;
  EXPECT_THAT(problem_of(other), AllOf(HasSubstr("run.max_tokens 7"), HasSubstr("(256)")));
  other = empty();
  other.options.prompts[0].turns[0] = "Another";
  EXPECT_THAT(problem_of(other), HasSubstr("run.prompts.digest"));
  other = empty();
  other.options.methods = read_methods("suffix");
  EXPECT_THAT(problem_of(other), HasSubstr("run.methods"));
  other = empty();
  other.machine.processor = "another";
  EXPECT_THAT(problem_of(other), HasSubstr("run.machine.processor"));
  other = empty();
  other.model.threads = 64;
  EXPECT_THAT(problem_of(other), HasSubstr("run.model.threads"));
  other = empty();
  other.model.rank_threads = {other.model.threads, 2};
  EXPECT_THAT(problem_of(other), HasSubstr("run.model.ranks"));
  EXPECT_EQ(bytes(), before);
}

TEST_F(ComparisonFiles, RefuseWhatIsNoRound) {
  for (const char* line :
       {"{}", "[]", "", "{\"round\": {}}", "{\"passes\": {\"context\": 3, \"passes\": []}}",
        "{\"round\": {\"prompt\": 9, \"temperature\": 0, \"repeat\": 0, \"samples\": []}}",
        "{\"round\": {\"prompt\": 0, \"temperature\": 0, \"repeat\": 0, \"samples\": []}}"}) {
    std::filesystem::remove(path_);
    write(1);
    std::ofstream(path_, std::ios::binary | std::ios::app) << line << "\n";
    const std::string before = bytes();
    EXPECT_THAT(problem_of(empty()), AllOf(HasSubstr("line 4"), HasSubstr("a round or passes")))
        << line;
    EXPECT_EQ(bytes(), before);
  }
  std::ofstream(path_, std::ios::binary) << "something else\n";
  EXPECT_THAT(problem_of(empty()), HasSubstr("records of outrider bench methods"));
}

}  // namespace
}  // namespace outrider
