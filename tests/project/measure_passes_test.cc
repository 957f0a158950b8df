// SPDX-License-Identifier: Apache-2.0
// scripts/measure-passes: turns, tables, and resumption of an interrupted run. A stand-in replaces
// the other program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/models/tiny_model.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Words = std::vector<std::string>;

std::string contents(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class MeasurePasses : public ::testing::Test {
 protected:
  void SetUp() override {
    write_gguf(make_tiny_model({}), directory_.path() / "tiny.gguf");
    // Prints ten rows per second for any request, and records the requests.
    std::ofstream(path("llama-bench")) << "echo \"$*\" >>" << path("asked") << R"(
case "$*" in
  *"-n 16"*) echo '[{"n_prompt": 8, "n_gen": 0, "avg_ts": 10}, {"n_prompt": 0, "n_gen": 16, "avg_ts": 10}]' ;;
  *) echo '[{"n_prompt": 20, "n_gen": 0, "avg_ts": 10}]' ;;
esac
)";
  }
  std::string path(const char* name) const { return (directory_.path() / name).string(); }
  ProgramRun measure(const Words& more) const {
    Words words = {std::string("OUTRIDER=") + OUTRIDER_PROGRAM,
                   "python3",
                   (std::filesystem::path(OUTRIDER_SOURCE_DIR) / "scripts/measure-passes").string(),
                   path("out"),
                   path("tiny.gguf"),
                   "--threads",
                   "1",
                   "--prefill",
                   "20"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words, {.program = "/usr/bin/env"});
  }

  TemporaryDirectory directory_;
};

TEST_F(MeasurePasses, TakesTurnsAndGoesOnWhereItWas) {
  const Words settings = {"--rows",   "2,8",   "--llama-bench", "sh " + path("llama-bench"),
                          "--tables", "scalar"};
  const auto turns = [&](const char* n) {
    Words words = settings;
    words.insert(words.end(), {"--turns", n});
    return measure(words);
  };
  const ProgramRun first = turns("1");
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("## tiny\n"));
  EXPECT_THAT(first.out, HasSubstr("\n| 8 | "));
  EXPECT_THAT(first.out, HasSubstr(" | 800.0 | "));  // eight rows, at ten per second
  EXPECT_THAT(first.out, HasSubstr("\n| prefill | "));
  EXPECT_THAT(first.out, HasSubstr(" | 2000.0 | "));
  EXPECT_THAT(first.out, HasSubstr("| scalar | times ours |"));
  const std::string one = contents(path("out/tiny.ours.1.json"));

  const ProgramRun second = turns("2");
  ASSERT_EQ(second.status, 0) << second.err;
  EXPECT_THAT(second.err, Not(HasSubstr("turn 1 of 2")));
  EXPECT_THAT(second.err, HasSubstr("turn 2 of 2: tiny, llama.cpp"));
  EXPECT_EQ(contents(path("out/tiny.ours.1.json")), one);
  EXPECT_EQ(contents(path("out/passes.md")), second.out);
  // The ratio of a turn uses figures of that turn only.
  const auto seconds = [&](const char* file) {
    return nlohmann::json::parse(contents(path(file)))["seconds"]["8"].get<double>();
  };
  EXPECT_EQ(seconds("out/tiny.llamacpp.2.json"), 0.8);
  EXPECT_GT(seconds("out/tiny.ours.2.json"), 0);
  EXPECT_THAT(contents(path("asked")), HasSubstr("-d 0 -p 8 -n 16"));

  const ProgramRun other = measure({"--rows", "4"});
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, HasSubstr("holds measurements with other settings"));
}

TEST_F(MeasurePasses, SaysInALineWhatIsWrong) {
  const ProgramRun missing = measure({"--llama-bench", "/nowhere/llama-bench"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, HasSubstr("/nowhere/llama-bench"));
  EXPECT_THAT(missing.err, Not(HasSubstr("Traceback")));
  EXPECT_THAT(missing.out, IsEmpty());
  const ProgramRun unknown = measure({"--tables", "sse9"});
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.err, HasSubstr("sse9"));
  EXPECT_THAT(unknown.err, Not(HasSubstr("Traceback")));
  const ProgramRun usage = measure({"--rows", "two"});
  EXPECT_EQ(usage.status, 2);
  EXPECT_EQ(usage.err,
            "measure-passes: argument --rows: expected numbers from 1 on and commas, "
            "got two (--help says more)\n");
}

}  // namespace
}  // namespace outrider::test
