// SPDX-License-Identifier: Apache-2.0
// tools/include_graph.py, on a tree written by the test: the edges that it counts, and the faults
// that it reports.
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
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class IncludeGraph : public ::testing::Test {
 protected:
  IncludeGraph() {
    write("include/outrider/types.h", "#include <vector>\n");
    write("src/base/spec.h", "#include \"outrider/types.h\"\n");
    write("src/io/gguf/gguf.h", "#include \"base/spec.h\"\n");
    write("src/io/gguf/gguf.cc", "#include \"io/gguf/gguf.h\"\n\n#include \"base/spec.h\"\n");
    write("src/io/gguf/gguf_test.cc", "#include \"base/spec.h\"\n#include \"tests/near.h\"\n");
    write("tests/near.h", "");
  }
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    std::ofstream(folder_.path() / name) << text;
  }
  ProgramRun run(const std::string& what) {
    return run_program({"python3", OUTRIDER_SOURCE_DIR "/tools/include_graph.py", "--root",
                        folder_.path().string(), what},
                       {.program = "/usr/bin/env"});
  }

 private:
  TemporaryDirectory folder_;
};

TEST_F(IncludeGraph, CountsEdgesBetweenLayersWithoutTests) {
  const ProgramRun graph = run("--edges");
  EXPECT_EQ(graph.status, 0) << graph.err;
  EXPECT_THAT(graph.out, AllOf(ContainsRegex("io +-> base +2\n"),
                               ContainsRegex("base +-> include/outrider +1\n"),
                               HasSubstr("2 edges, 3 includes"), Not(HasSubstr("-> tests"))));
}

TEST_F(IncludeGraph, FortyFilesPassAndOneMoreIsNamed) {
  for (int i = 0; i < 39; ++i) write("src/base/more" + std::to_string(i) + ".h", "");
  EXPECT_EQ(run("--check").status, 0);
  EXPECT_THAT(run("--folders").out, HasSubstr("40 src/base\n"));
  write("src/base/one_more.h", "");
  const ProgramRun check = run("--check");
  EXPECT_EQ(check.status, 1);
  EXPECT_THAT(check.out,
              AllOf(HasSubstr("src/base: 41 files, at most 40"), HasSubstr("1 finding")));
}

TEST_F(IncludeGraph, AnIncludeOfNothingIsNamed) {
  write("src/io/old.cc", "#include \"io/gguf.h\"\n#include <io/no.h>\n  #  include \"spec.h\"\n");
  const ProgramRun check = run("--check");
  EXPECT_EQ(check.status, 1);
  EXPECT_THAT(check.out, AllOf(HasSubstr("src/io/old.cc: #include \"io/gguf.h\" names no file"),
                               HasSubstr("src/io/old.cc: #include \"spec.h\" names no file"),
                               HasSubstr("2 findings"), Not(HasSubstr("no.h"))));
}

TEST_F(IncludeGraph, WhatIsBuiltDoesNotCount) {
  for (int i = 0; i < 50; ++i) {
    write("build/src/made" + std::to_string(i) + ".h", "");
    write("build-dev/made" + std::to_string(i) + ".cc", "#include \"none.h\"\n");
  }
  EXPECT_EQ(run("--check").status, 0);
}

}  // namespace
}  // namespace outrider::test
