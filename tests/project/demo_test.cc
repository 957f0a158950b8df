// SPDX-License-Identifier: Apache-2.0
// scripts/demo, which `make demo` runs once the program is built.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string demo() {
  return (std::filesystem::path(OUTRIDER_SOURCE_DIR) / "scripts" / "demo").string();
}

// The script in this environment, NAME=VALUE each.
ProgramRun run_demo(std::vector<std::string> environment) {
  environment.insert(environment.end(), {"bash", demo()});
  return run_program(environment, {.program = "/usr/bin/env"});
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// In a locale with decimal commas if the system can make one; otherwise in C.
TEST(Demo, ShowsEveryWayAndThatNothingChanges) {
  const TemporaryDirectory locales;
  const std::string german = "de_DE.UTF-8";
  run_program({"localedef", "-i", "de_DE", "-f", "UTF-8", (locales.path() / german).string()},
              {.program = "/usr/bin/env"});
  const ProgramRun run =
      run_demo({std::string("OUTRIDER=") + OUTRIDER_PROGRAM, "RUNS=1", "LC_ALL=" + german,
                "LOCPATH=" + locales.path().string(), "OMP_WAIT_POLICY=passive"});
  ASSERT_EQ(run.status, 0) << run.out << run.err;
  EXPECT_THAT(run.err, Not(HasSubstr("printf")));
  EXPECT_EQ(count(run.out, "the target's, token for token"), 10u) << run.out;
  EXPECT_EQ(count(run.out, "other ones, as the rule allows"), 1u) << run.out;
  EXPECT_THAT(run.err, HasSubstr("[accepted draft]"));
  EXPECT_THAT(run.out, HasSubstr("\n  plain decoding"));
  EXPECT_THAT(run.out, HasSubstr("generate --model models/target --drafter"));
  EXPECT_THAT(run.out, Not(HasSubstr("\033")));  // no terminal
}

TEST(Demo, SaysWhatToDoWithoutAProgram) {
  const ProgramRun run = run_demo({"OUTRIDER=nowhere"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_THAT(run.err, HasSubstr("make build"));
  EXPECT_EQ(count(run.err, "\n"), 1u) << run.err;
}

// One program whose answers differ with a drafter, and one whose output cannot be parsed.
TEST(Demo, FailsIfALosslessWayChangesTheText) {
  const TemporaryDirectory folder;
  const auto with_program = [&](const std::string& script) {
    const std::filesystem::path program = folder.path() / "outrider";
    std::ofstream(program) << script;
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    return run_demo({"OUTRIDER=" + program.string(), "RUNS=1"});
  };
  const ProgramRun wrong = with_program(
      "#!/bin/bash\nids='[1,2]'; [[ $* == *suffix* ]] && ids='[1,3]'\n"
      "echo \"{\\\"ids\\\":$ids,\\\"tau\\\":2,\\\"tokens_per_second\\\":100}\"\n");
  EXPECT_EQ(wrong.status, 1) << wrong.out << wrong.err;
  EXPECT_EQ(count(wrong.out, "DIFFERENT"), 2u) << wrong.out;
  const ProgramRun mute = with_program("#!/bin/bash\necho '{}'\n");
  EXPECT_EQ(mute.status, 1);
  EXPECT_THAT(mute.err, HasSubstr("no \"ids\""));
}

}  // namespace
}  // namespace outrider::test
