// SPDX-License-Identifier: Apache-2.0
// scripts/spdx on files written by the test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
namespace {

using ::testing::HasSubstr;

class SpdxScript : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const std::string path = (folder_.path() / name).string();
    std::ofstream(path) << text;
    return path;
  }
  static std::string read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static ProgramRun spdx(std::vector<std::string> words) {
    words.insert(words.begin(), {"python3", OUTRIDER_SOURCE_DIR "/scripts/spdx"});
    return run_program(words, {.program = "/usr/bin/env"});
  }

 private:
  TemporaryDirectory folder_;
};

TEST_F(SpdxScript, AddsTheLineOnceAndChecksIt) {
  const std::string source = write("a.cc", "// What it is.\nint a;\n");
  const std::string script = write("b", "#!/usr/bin/env bash\necho b\n");
  const std::string text = write("c.md", "# Words\n");
  ProgramRun run = spdx({"--check", source, script, text});
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_THAT(run.out, HasSubstr("0 of 2 files"));
  EXPECT_EQ(read(source), "// What it is.\nint a;\n");

  EXPECT_EQ(spdx({source, script, text}).status, 0);
  EXPECT_EQ(read(source), "// SPDX-License-Identifier: Apache-2.0\n// What it is.\nint a;\n");
  EXPECT_EQ(read(script), "#!/usr/bin/env bash\n# SPDX-License-Identifier: Apache-2.0\necho b\n");
  EXPECT_EQ(read(text), "# Words\n");
  run = spdx({"--check", source, script});
  EXPECT_EQ(run.status, 0) << run.out;
  const std::string once = read(source);
  EXPECT_EQ(spdx({source}).status, 0);
  EXPECT_EQ(read(source), once);
}

TEST_F(SpdxScript, KnowsTheCommentsOfOtherKindsOfFiles) {
  const std::string page = write("page.html", "<!doctype html>\n<p>\n");
  const std::string style = write("page.css", "p {}\n");
  const std::string made = write("a.cmake.in", "set(a @A@)\n");
  EXPECT_EQ(spdx({page, style, made}).status, 0);
  EXPECT_EQ(read(page), "<!doctype html>\n<!-- SPDX-License-Identifier: Apache-2.0 -->\n<p>\n");
  EXPECT_EQ(read(style), "/* SPDX-License-Identifier: Apache-2.0 */\np {}\n");
  EXPECT_EQ(read(made), "# SPDX-License-Identifier: Apache-2.0\nset(a @A@)\n");
  EXPECT_EQ(spdx({"--check", page, style, made}).status, 0);
}

// What the reference of the library says of a file is its own comment, not the licence's line.
TEST(DoxygenComments, BeginWithTheFilesOwn) {
  const ProgramRun run = run_program({"python3", OUTRIDER_SOURCE_DIR "/scripts/doxygen-comments",
                                      OUTRIDER_SOURCE_DIR "/include/outrider/batch.h"},
                                     {.program = "/usr/bin/env"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(
      run.out.starts_with("// SPDX-License-Identifier: Apache-2.0\n"
                          "/// @file\n"
                          "/// Continuous batching: "))
      << run.out.substr(0, 200);
  EXPECT_THAT(run.out, HasSubstr("\n/// @code{.unparsed}\n"));
}

TEST_F(SpdxScript, RefusesAnotherLicence) {
  const std::string source = write("a.h", "// SPDX-License-Identifier: MIT\nint a;\n");
  const ProgramRun run = spdx({source});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("expected Apache-2.0, got MIT"));
}

}  // namespace
}  // namespace outrider::test
