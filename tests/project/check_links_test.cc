// SPDX-License-Identifier: Apache-2.0
// scripts/check-links on files written by the test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CheckLinks : public ::testing::Test {
 protected:
  CheckLinks() {
    std::filesystem::create_directory(folder_.path() / "docs");
    write("docs/other.md",
          "# Other `--flag` things\n\n## Twice\n\n## Twice\n\n```\n## Code\n```\n");
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() / name) << text;
  }
  ProgramRun check(const std::string& text) {
    write("page.md", text);
    return run_program({"python3", OUTRIDER_SOURCE_DIR "/scripts/check-links",
                        (folder_.path() / "page.md").string()},
                       {.program = "/usr/bin/env"});
  }

 private:
  TemporaryDirectory folder_;
};

TEST_F(CheckLinks, GoodOnesPass) {
  const ProgramRun run = check(
      "# Title: with 2 parts\n"
      "[a](docs/other.md), [b](docs/other.md#other---flag-things), [c](#title-with-2-parts),\n"
      "[d](docs/other.md#twice-1), [e](docs), [f](https://example.com/nothing#there),\n"
      "`[g](no/link)`, ![h](page.md)\n"
      "```\n[i](no/link)\n```\n");
  EXPECT_EQ(run.status, 0) << run.out;
  EXPECT_THAT(run.out, HasSubstr("7 links in 1 files, 0 broken"));
}

TEST_F(CheckLinks, BrokenOnesAreNamed) {
  const ProgramRun run = check(
      "[a](docs/none.md)\n[b](docs/other.md#none) ![c](none.svg)\n[d](docs/other.md#code)\n"
      "[e]: none.txt\n<img src=\"none.png\">\n[f](/docs/other.md)\n[g](docs/other.md#twice)\n");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("page.md:1: docs/none.md"),
                    HasSubstr("page.md:2: docs/other.md#none"), HasSubstr("page.md:2: none.svg"),
                    HasSubstr("page.md:3: docs/other.md#code"), HasSubstr("page.md:4: none.txt"),
                    HasSubstr("page.md:5: none.png"), HasSubstr("page.md:6: /docs/other.md")));
  EXPECT_THAT(run.out, Not(HasSubstr("page.md:7")));
}

}  // namespace
}  // namespace outrider::test
