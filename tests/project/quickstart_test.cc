// SPDX-License-Identifier: Apache-2.0
// scripts/try-quickstart: the commands of docs/quickstart.md run with the shipped models, and the
// script fails if one of them fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Runs the script in this environment, NAME=VALUE each. One thread: other tests run at the same
// time, and two threads that wait for each other's processors take a hundred times as long.
ProgramRun try_quickstart(std::vector<std::string> environment) {
  const std::filesystem::path source = OUTRIDER_SOURCE_DIR;
  environment.insert(environment.end(), {"OMP_WAIT_POLICY=passive", "OMP_NUM_THREADS=1", "bash",
                                         (source / "scripts" / "try-quickstart").string()});
  return run_program(environment, {.program = "/usr/bin/env"});
}

// Runs the script on a page with this text, with the program of the build.
ProgramRun try_page(const std::string& text) {
  const TemporaryDirectory folder;
  const std::filesystem::path page = folder.path() / "page.md";
  std::ofstream(page) << text;
  return try_quickstart(
      {std::string("OUTRIDER=") + OUTRIDER_PROGRAM, "QUICKSTART=" + page.string()});
}

TEST(Quickstart, EveryCommandOfThePageRuns) {
  if (std::system("command -v curl >/dev/null && command -v python3 >/dev/null") != 0) {
    GTEST_SKIP() << "curl or python3 is missing";
  }
  const ProgramRun run = try_quickstart({std::string("OUTRIDER=") + OUTRIDER_PROGRAM});
  ASSERT_EQ(run.status, 0) << run.out << run.err;
  // One sign for each task: generated, drafted, served, traded, made.
  EXPECT_THAT(run.out, HasSubstr("chat template           none"));
  EXPECT_THAT(run.err, HasSubstr("[accepted draft]"));
  EXPECT_THAT(run.out, HasSubstr("\"object\":\"text_completion\""));
  EXPECT_THAT(run.out, HasSubstr("lossy:alpha=0.5"));
  EXPECT_THAT(run.out, HasSubstr("texts.store: "));
  EXPECT_THAT(run.out, HasSubstr("all commands of quickstart.md ran"));
}

TEST(Quickstart, EndsAtTheFirstCommandThatFails) {
  const ProgramRun run = try_page(
      "```sh\necho one\n```\n\nText.\n\n```sh\nfalse\necho two\n```\n```sh\necho three\n```\n");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, HasSubstr("one"));
  EXPECT_THAT(run.out, Not(HasSubstr("two")));
  EXPECT_THAT(run.out, Not(HasSubstr("three")));
  EXPECT_THAT(run.err, HasSubstr("the block in line 7 failed"));
}

TEST(Quickstart, LeavesOutWhatIsMarkedAndWhatIsNoCommand) {
  const ProgramRun run = try_page(
      "<!-- try: skip, since it fails -->\n```sh\nfalse\n```\n"
      "```python\nfalse\n```\n```\nfalse\n```\n"
      "```sh\necho \"$(basename \"$TARGET\") $(basename \"$DRAFTER\")\"\n```\n");
  EXPECT_EQ(run.status, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("target drafter\n"));
  EXPECT_THAT(run.out, HasSubstr("skip, since it fails"));
}

TEST(Quickstart, RefusesAPageWithoutCommandsAndAProgramThatIsNotThere) {
  EXPECT_EQ(try_page("No commands.\n").status, 1);
  const ProgramRun run = try_quickstart({"OUTRIDER=nowhere"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("make build"));
}

}  // namespace
}  // namespace outrider::test
