// SPDX-License-Identifier: Apache-2.0
// outrider generate with a constrained form: --grammar, --json-schema, --regex.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/models/cli_models.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

Words generate(const Words& more) {
  Words words = {"generate",     "--model", CliModels::get().target(), "--prompt", "A",
                 "--max-tokens", "60"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class Files {
 public:
  std::string add(const std::string& name, const std::string& text) {
    const std::filesystem::path path = directory_.path() / name;
    std::ofstream(path) << text;
    return path.string();
  }

 private:
  TemporaryDirectory directory_;
};

TEST(CliGrammar, TextsAreOfTheForm) {
  Files files;
  const ProgramRun regex = run_program(generate({"--regex", "(yes|no){2}!"}));
  EXPECT_EQ(regex.status, 0) << regex.err;
  EXPECT_THAT(regex.out, MatchesRegex("(yes|no)(yes|no)!\n"));
  const ProgramRun gbnf =
      run_program(generate({"--grammar", files.add("g.gbnf", "root ::= [a-c]{3} # short\n"),
                            "--seed", "4", "--temperature", "1"}));
  EXPECT_EQ(gbnf.status, 0) << gbnf.err;
  EXPECT_THAT(gbnf.out, MatchesRegex("[a-c][a-c][a-c]\n"));
  const std::string schema = files.add(
      "s.json", R"({"type":"object","properties":{"a":{"enum":["x","y"]}},"required":["a"]})");
  const ProgramRun plain = run_program(generate({"--json-schema", schema, "--json"}));
  EXPECT_EQ(plain.status, 0) << plain.err;
  const auto result = nlohmann::json::parse(plain.out);
  EXPECT_EQ(result["finish_reason"], "stop");
  const auto object = nlohmann::json::parse(result["text"].get<std::string>());
  EXPECT_EQ(object.size(), 1U);
  EXPECT_THAT(object["a"].get<std::string>(), MatchesRegex("[xy]"));
  const ProgramRun drafted = run_program(
      generate({"--json-schema", schema, "--json", "--drafter", "first:grammar,suffix"}));
  EXPECT_EQ(nlohmann::json::parse(drafted.out)["ids"], result["ids"]);
}

TEST(CliGrammar, WhatIsNotReadIsRefusedBeforeAModelIsLoaded) {
  Files files;
  const auto refused = [](const Words& words) {
    Words all = {"generate", "--model", "nowhere", "--prompt", "A"};
    all.insert(all.end(), words.begin(), words.end());
    return run_program(all);
  };
  const ProgramRun keyword =
      refused({"--json-schema", files.add("s.json", R"({"type":"array","contains":{}})")});
  EXPECT_EQ(keyword.status, 1);
  EXPECT_THAT(keyword.err, HasSubstr("expected a supported keyword, got 'contains'"));
  const ProgramRun gbnf = refused({"--grammar", files.add("g.gbnf", "root ::= (\"a\"\n")});
  EXPECT_EQ(gbnf.status, 1);
  EXPECT_THAT(gbnf.err, HasSubstr("line 2, column 1: expected )"));
  EXPECT_THAT(refused({"--regex", "(?=a)"}).err, HasSubstr("lookahead"));
  EXPECT_THAT(refused({"--grammar", "no-such-file"}).err, HasSubstr("no-such-file"));
  const ProgramRun both = refused({"--regex", "a", "--json-schema", "s.json"});
  EXPECT_EQ(both.status, 2);
  EXPECT_THAT(both.err, HasSubstr("--regex"));
}

}  // namespace
}  // namespace outrider::test
