// SPDX-License-Identifier: Apache-2.0
// `outrider drafters`, `outrider rules` and `outrider trees`, and how --help refers to them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/run_program.h"

namespace outrider::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

std::string output_of(const std::vector<std::string>& words) {
  const ProgramRun run = run_program(words);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, IsEmpty());
  return run.out;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

void expect_80_columns(const std::string& text) {
  for (const std::string& line : lines_of(text)) {
    EXPECT_LE(line.size(), 80U) << line;
    for (const char c : line) EXPECT_TRUE(c >= ' ' && c <= '~') << line;
  }
}

class SpecCommands : public ::testing::TestWithParam<std::string> {};

TEST_P(SpecCommands, ListWhatTheyExplain) {
  const std::string& command = GetParam();
  const std::string table = output_of({command});
  expect_80_columns(table);
  const std::vector<std::string> rows = lines_of(table);
  const json list = json::parse(output_of({command, "--json"}));
  ASSERT_GT(list.size(), 7U);
  ASSERT_GT(rows.size(), list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string name = list[i]["name"];
    SCOPED_TRACE(name);
    EXPECT_THAT(rows[i + 1], StartsWith(list[i]["form"].get<std::string>()));
    EXPECT_THAT(rows[i + 1], HasSubstr(list[i]["needs"].get<std::string>()));
    const std::string text = output_of({command, name});
    expect_80_columns(text);
    EXPECT_THAT(text, HasSubstr("\nSource:\n"));
    EXPECT_THAT(text, HasSubstr("\nWhen it pays:\n"));
    EXPECT_THAT(text, HasSubstr("\nExample:\n  outrider "));
    for (const json& key : list[i]["keys"]) {
      EXPECT_THAT(text, HasSubstr("\n  " + key["name"].get<std::string>() + "="));
    }
    EXPECT_EQ(json::parse(output_of({command, name, "--json"})), list[i]);
    // The name of a kind is the first part of a spec, as typed on a command line.
    EXPECT_EQ(output_of({command, name + ":PATH,key=value"}), text);
  }
}

INSTANTIATE_TEST_SUITE_P(, SpecCommands, ::testing::Values("drafters", "rules", "trees"),
                         [](const auto& info) { return info.param; });

TEST(SpecCommand, KeysSayTheirDefaults) {
  const std::string model = output_of({"drafters", "model"});
  EXPECT_THAT(model, HasSubstr("  length=K "));
  EXPECT_THAT(model, HasSubstr("(default: 5)"));
  EXPECT_THAT(model, HasSubstr("  weights=f32|bf16|int8|int4 "));
  const json chow = json::parse(output_of({"rules", "chow", "--json"}));
  ASSERT_EQ(chow["keys"].size(), 3U);
  EXPECT_EQ(chow["keys"][0]["name"], "alpha");
  EXPECT_TRUE(chow["keys"][0]["default"].is_null());
  EXPECT_EQ(chow["keys"][1]["default"], "zero-one");
  EXPECT_EQ(json::parse(output_of({"rules", "lossy-greedy", "--json"}))["keys"][1]["default"],
            "target");
}

// The descriptions are separate from the code that parses shapes. Each example is accepted, and so
// is each shape by its name alone if it needs no value; the error is then about the model.
TEST(SpecCommand, TreesAreTaken) {
  std::vector<std::string> specs = {"auto",          "own",           "chain",   "widths:4,2,1",
                                    "static:eagle1", "static:medusa", "dynamic", "best"};
  for (const json& tree : json::parse(output_of({"trees", "--json"}))) {
    for (const json& key : tree["keys"]) {
      if (key["value"] != "FILE") specs.push_back(key["example"]);
    }
    EXPECT_THAT(tree["example"].get<std::string>(),
                HasSubstr("--tree " + tree["name"].get<std::string>()));
  }
  ASSERT_GT(specs.size(), 15U);
  for (const std::string& spec : specs) {
    if (spec.starts_with("sequoia:")) continue;  // Its file is read first.
    const ProgramRun run = run_program({"generate", "--model", "/nowhere", "--draft", "/nowhere",
                                        "--prompt", "a", "--tree", spec});
    EXPECT_EQ(run.status, 1) << spec << ": " << run.err;
    EXPECT_THAT(run.err, HasSubstr("/nowhere"));
  }
  // An undescribed key is refused.
  const ProgramRun run = run_program({"generate", "--model", "/nowhere", "--draft", "/nowhere",
                                      "--prompt", "a", "--tree", "best:topk=3"});
  EXPECT_EQ(run.status, 2) << run.err;
}

// --help names the commands in one line each instead of printing their lists.
TEST(SpecCommand, HelpPointsAtThem) {
  for (const char* const command : {"generate", "chat", "serve"}) {
    const std::string help = output_of({command, "--help"});
    int n_found = 0;
    for (const std::string& line : lines_of(help)) {
      for (const char* const flag : {"--drafter SPEC", "--rule SPEC", "--tree SPEC"}) {
        if (line.find(flag) == std::string::npos) continue;
        EXPECT_THAT(line, HasSubstr("; see outrider "));
        ++n_found;
      }
    }
    EXPECT_EQ(n_found, 3) << command;
    EXPECT_THAT(help, Not(HasSubstr("lookahead")));
  }
}

}  // namespace
}  // namespace outrider::test
