// SPDX-License-Identifier: Apache-2.0
// scripts/try-as-newcomer on small repositories: what it runs, what it says of each step, and that
// it ends at the first that fails. (The repository itself: ctest -C Nightly -R newcomer.)
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

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kReadme =
    "# A project\n\n```sh\nmake one     # words\nmake two\n```\n\n"
    "<!-- try: skip, since it asks the network -->\n```sh\nfalse\n```\n\n"
    "```\nfalse\n```\n\n```sh\necho \"both\n  lines\" \\\n  joined\n```\n";
constexpr const char* kQuickstart =
    "# Quickstart\n\n<!-- try: as a newcomer -->\n```sh\necho built\n```\n\n## 1. A task\n\n"
    "```sh\nfalse\n```\n";
// As the real one: it adds its tasks to the steps.
constexpr const char* kTasks =
    "#!/bin/bash\nprintf '%s\\tquickstart.md: %s\\n' \"$EPOCHREALTIME\" '1. A task' >>\"$STEPS\"\n";

class Newcomer : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v git >/dev/null") != 0) GTEST_SKIP() << "git is missing";
    write("README.md", kReadme);
    write("docs/quickstart.md", kQuickstart);
    write("scripts/try-quickstart", kTasks);
    write("Makefile", "one two:\n\t@echo made $@\n");
    write(".gitignore", "/ignored\n");
  }

  void write(const std::string& name, const std::string& text) const {
    const fs::path path = repository() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    fs::permissions(path, fs::perms::owner_all);
  }

  fs::path repository() const { return folder_.path() / "repository"; }
  fs::path clones() const { return folder_.path() / "clones"; }

  // Commits what was written, and runs the script on it.
  ProgramRun run(std::vector<std::string> flags = {}) const {
    fs::create_directories(clones());
    const std::string git = "git -C '" + repository().string() + "' ";
    const std::string commit =
        git + "init --quiet && " + git + "add --all && " + git +
        "-c user.name=A -c user.email=a@example.com -c commit.gpgsign=false commit --quiet "
        "--allow-empty --message=All";
    EXPECT_EQ(std::system(commit.c_str()), 0);
    std::vector<std::string> words = {
        "TMPDIR=" + clones().string(), "bash",
        (fs::path(OUTRIDER_SOURCE_DIR) / "scripts" / "try-as-newcomer").string()};
    words.insert(words.end(), flags.begin(), flags.end());
    words.push_back(repository().string());
    return run_program(words, {.program = "/usr/bin/env"});
  }

  std::vector<fs::path> kept() const {
    return {fs::directory_iterator(clones()), fs::directory_iterator()};
  }

 private:
  TemporaryDirectory folder_;
};

TEST_F(Newcomer, RunsWhatThePagesSayAndTellsTheSecondsOfEachStep) {
  const ProgramRun run = this->run();
  ASSERT_EQ(run.status, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("made one\n"));
  EXPECT_THAT(run.out, HasSubstr("both\n  lines joined\n"));
  EXPECT_THAT(run.out, HasSubstr("built\n"));
  for (const char* step : {"git clone", "README.md:4: make one", "README.md:5: make two",
                           "quickstart.md: 1. A task", "nothing is left behind"}) {
    EXPECT_THAT(run.out, ContainsRegex(std::string(" [0-9]+\\.[0-9] s  ") + step));
  }
  EXPECT_THAT(run.out, HasSubstr("all steps of a newcomer passed"));
  EXPECT_THAT(kept(), IsEmpty());
}

TEST_F(Newcomer, EndsAtTheFirstStepThatFailsAndNamesIt) {
  write("Makefile", "one:\n\t@false\ntwo:\n\t@echo made $@\n");
  const ProgramRun run = this->run();
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("failed at: README.md:4: make one\n"));
  EXPECT_THAT(run.out, Not(HasSubstr("made two")));
  EXPECT_THAT(kept(), IsEmpty());
}

TEST_F(Newcomer, NamesTheTaskThatFails) {
  write("scripts/try-quickstart", std::string(kTasks) + "exit 1\n");
  const ProgramRun run = this->run();
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("failed at: quickstart.md: 1. A task\n"));
}

TEST_F(Newcomer, FailsWhereFilesAreLeftBehind) {
  write("Makefile", "one:\n\ttouch ignored\ntwo:\n\ttouch unknown\n");
  const ProgramRun run = this->run();
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, HasSubstr("?? unknown\n"));
  EXPECT_THAT(run.out, Not(HasSubstr("?? ignored\n")));
  EXPECT_THAT(run.err, HasSubstr("failed at: nothing is left behind\n"));
}

TEST_F(Newcomer, LeavesOutWhatItIsToldTo) {
  const ProgramRun run = this->run({"--skip", "make one"});
  EXPECT_EQ(run.status, 0) << run.out << run.err;
  EXPECT_THAT(run.out, Not(HasSubstr("made one")));
  EXPECT_THAT(run.out, HasSubstr("left out    make one\n"));
  const ProgramRun other = this->run({"--skip", "make three"});
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.err, HasSubstr("make three: no page has this command"));
}

TEST_F(Newcomer, KeepsTheCloneWhenAsked) {
  const ProgramRun run = this->run({"--keep"});
  ASSERT_EQ(run.status, 0) << run.out << run.err;
  ASSERT_EQ(kept().size(), 1u);
  EXPECT_TRUE(fs::is_regular_file(kept()[0] / "outrider" / "README.md"));
  EXPECT_THAT(run.out, HasSubstr("the clone is kept: " + kept()[0].string()));
}

TEST_F(Newcomer, RefusesAReadmeWithoutCommands) {
  write("README.md", "# A project\n\n```\nmake one\n```\n");
  const ProgramRun run = this->run();
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("README.md: no block of commands"));
}

}  // namespace
}  // namespace outrider::test
