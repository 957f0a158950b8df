// SPDX-License-Identifier: Apache-2.0
// Empty values on the command line. They are accepted if the empty text has a meaning and refused
// by name if not, and never equal a missing flag. --flag= and --flag "" are the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/models/cli_models.h"
#include "tests/support/run_program.h"

namespace outrider::test {
namespace {

using ::testing::HasSubstr;

// The results for `flag` with an empty value, written in both ways, after `words`.
std::vector<ProgramRun> both_ways(const Words& words, const std::string& flag) {
  Words joined = words;
  joined.push_back(flag + "=");
  Words apart = words;
  apart.insert(apart.end(), {flag, ""});
  return {run_program(joined), run_program(apart)};
}

TEST(EmptyValues, AreTextsWhereTextIsAsked) {
  const std::string model = CliModels::get().target();
  for (const ProgramRun& run : both_ways({"tokenize", "--model", model, "--ids"}, "--text")) {
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(run.out, "0\n");  // the token that begins a text
  }
  for (const ProgramRun& run : both_ways({"tokenize", "--model", model}, "--decode")) {
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(run.out, "\n");
  }
  const Words generate = {"generate", "--model", model, "--max-tokens", "3", "--ignore-eos"};
  const std::vector<ProgramRun> prompts = both_ways(generate, "--prompt");
  EXPECT_EQ(prompts[0].status, 0) << prompts[0].err;
  EXPECT_FALSE(prompts[0].out.empty());
  EXPECT_EQ(prompts[0].out, prompts[1].out);
}

// The word after an empty value is the next flag, not the value.
TEST(EmptyValues, TakeNoOtherWordAlong) {
  const std::string model = CliModels::get().target();
  const ProgramRun run = run_program({"tokenize", "--text=", "--model", model, "--ids"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, "0\n");
  // A word that looks like a flag with an empty value is a value where one is expected, and no flag
  // after --.
  const ProgramRun value = run_program({"tokenize", "--model", model, "--text", "--ids="});
  const ProgramRun plain = run_program({"tokenize", "--model", model, "--text=--ids="});
  EXPECT_EQ(value.status, 0) << value.err;
  EXPECT_EQ(value.out, plain.out);
  EXPECT_EQ(run_program({"tokenize", "--model", model, "--", "--text="}).status, 2);
}

struct Refused {
  Words words;
  std::string flag;
  std::string expected;
};

TEST(EmptyValues, AreRefusedByNameWhereTheyMeanNothing) {
  const std::string model = CliModels::get().target();
  const Words generate = {"generate", "--model", model, "--prompt", "a"};
  const Words store = {"datastore", "build", "--model", model, "--text", "t", "--out", "o"};
  const Words eval = {"eval", "--model", model, "--draft", model, "--teacher-forced"};
  const Words tree = {"tune", "tree", "--model", model, "--draft", model, "--out", "o"};
  const std::vector<Refused> cases = {
      {{"generate", "--prompt", "a"}, "--model", "a path"},
      {{"generate", "--model", model}, "--prompt-file", "a path"},
      {generate, "--draft", "a path"},
      {generate, "--drafter", "a drafter (none, model:PATH, ...)"},
      {generate, "--tree",
       "auto, own or a shape (chain:, widths:, static:, dynamic:, best: or sequoia:)"},
      {generate, "--profile", "a path"},
      {generate, "--rule", "a rule (exact, chow:alpha=A, ...)"},
      {{"generate", "--prompt", "a"}, "--cascade", "three models, spec:A>B>C"},
      {generate, "--logits", "a path"},
      {generate, "--trace", "a path"},
      {generate, "--grammar", "a path"},
      {generate, "--json-schema", "a path"},
      {generate, "--regex", "a regular expression"},
      {generate, "--verdict-log", "a path"},
      {generate, "--stop", "a text"},
      {generate, "--weights", "one of f32, bf16, int8, int4"},
      {generate, "--threads", "an integer from 0"},
      {generate, "--seed", "an integer from 0"},
      {generate, "--temperature", "a number of 0 or more"},
      {{"chat"}, "--model", "a path"},
      {{"tokenize", "--text", "a"}, "--model", "a path"},
      {{"tokenize", "--model", model}, "--text-file", "a path"},
      {{"inspect"}, "--model", "a path"},
      {{"datastore", "build", "--text", "t", "--out", "o"}, "--model", "a path"},
      {store, "--text", "a path"},
      {store, "--separator", "a text"},
      {{"datastore", "inspect"}, "--path", "a path"},
      {tree, "--text", "a path"},
      {{"tune", "tree", "--model", model, "--text", "t", "--out", "o"}, "--separator", "a text"},
      {eval, "--text", "a path"},
      {eval, "--separator", "a text"},
      {eval, "--task", "a path"},
      {eval, "--data", "a path"},
      {eval, "--cascades", "cascades (token:chow, ...)"},
      {{"bench", "--model", model, "--draft", model}, "--tree", "a chain (chain:length=K)"},
      {{"train", "tokenizer", "--out", "o"}, "--text", "a path"},
      // Flags without values refuse an empty one, too.
      {{"tokenize", "--model", model, "--text", "a"}, "--ids", "no value"},
  };
  for (const Refused& one : cases) {
    SCOPED_TRACE(::testing::PrintToString(one.words) + " " + one.flag);
    const bool has_value = one.expected != "no value";
    for (const ProgramRun& run : both_ways(one.words, one.flag)) {
      EXPECT_EQ(run.status, 2);
      EXPECT_EQ(run.out, "");
      EXPECT_EQ(n_lines(run.err), 1) << run.err;
      EXPECT_THAT(run.err, HasSubstr(one.flag + ": expected " + one.expected));
      EXPECT_THAT(run.err, HasSubstr("got an empty "));
      if (!has_value) break;  // After a blank it is an extra word.
    }
  }
}

// The path of `inspect` may be an argument of its own, and a pair is two.
TEST(EmptyValues, PathsOfInspectAreRefusedToo) {
  const std::string model = CliModels::get().target();
  const ProgramRun run = run_program({"inspect", ""});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("--model: expected a path, got an empty text"));
  for (const Words& words :
       {Words{"inspect", "--pair", model, ""}, Words{"inspect", "--pair=", model}}) {
    const ProgramRun pair = run_program(words);
    EXPECT_EQ(pair.status, 2);
    EXPECT_THAT(pair.err, HasSubstr("--pair: expected two paths, got an empty text"));
  }
}

}  // namespace
}  // namespace outrider::test
