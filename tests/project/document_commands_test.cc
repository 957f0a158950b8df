// SPDX-License-Identifier: Apache-2.0
// tests/documents/check_commands.py on pages written by the test: what it runs, and what it finds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DocumentCommands : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v python3 >/dev/null && command -v curl >/dev/null") != 0) {
      GTEST_SKIP() << "python3 or curl is missing";
    }
  }

  ProgramRun check(const std::string& text) const {
    const std::filesystem::path page = folder_.path() / "page.md";
    std::ofstream(page) << text;
    return run_program({"OMP_WAIT_POLICY=passive", "python3",
                        OUTRIDER_SOURCE_DIR "/tests/documents/check_commands.py", "--program",
                        OUTRIDER_PROGRAM, page.string()},
                       {.program = "/usr/bin/env"});
  }

 private:
  TemporaryDirectory folder_;
};

TEST_F(DocumentCommands, RunOnTheShippedModelsUnderThePagesNames) {
  const ProgramRun run = check(
      "`outrider tune --only`, `make demo`, `scripts/lint`\n\n"
      "```sh\noutrider inspect --model TARGET  # words\n"
      "build/outrider generate --model models/target --draft SMALL \\\n"
      "    --prompt \"a\" --max-tokens 2\n"
      "outrider generate --model model.gguf --chat --prompt \"two\nlines\" --max-tokens 2\n```\n\n"
      "```sh\noutrider serve --model MODEL\n"
      "curl http://127.0.0.1:8080/v1/completions -d '{\n  \"prompt\": \"a\", \"max_tokens\": 2}'\n"
      "```\n\n```\noutrider bench --passes --model MODEL [--rows N,...]\n"
      "               [--json]\nother words\n```\n");
  EXPECT_EQ(run.status, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("9 commands"));
  EXPECT_THAT(run.out, AllOf(HasSubstr("5 started here"), HasSubstr("0 problems")));
}

TEST_F(DocumentCommands, AreFoundWhereTheyFailOrNoTestRunsThem) {
  const ProgramRun run = check(
      "`outrider tune --none`, `make tea`, `scripts/none`\n\n"
      "```sh\noutrider inspect --model NOWHERE\n```\n\n"
      "```sh\noutrider inspect --model TARGET --none\n```\n\n"
      "```sh\nfrobnicate\n```\n\n"
      "```sh\ncurl http://127.0.0.1:8080/none\n```\n\n"
      "```sh\noutrider generate --device vulkan:0 --model M --weights int9\n```\n\n"
      "```\noutrider bench --passes [--none N]\n```\n");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, HasSubstr("9 problems"));
  EXPECT_THAT(run.err,
              AllOf(HasSubstr("outrider tune has no flag --none"),
                    HasSubstr("make has no target tea"), HasSubstr("scripts/none is no script")));
  EXPECT_THAT(run.err, AllOf(HasSubstr("page.md:4: outrider inspect --model NOWHERE\n    status 1"),
                             HasSubstr("page.md:8: outrider inspect --model TARGET --none\n"),
                             HasSubstr("page.md:12: frobnicate\n    no test runs it"),
                             HasSubstr("page.md:16: curl http://127.0.0.1:8080/none\n    status"),
                             HasSubstr("--weights int9\n    status 2"),
                             HasSubstr("outrider bench has no flag --none")));
}

}  // namespace
}  // namespace outrider::test
