// SPDX-License-Identifier: Apache-2.0
// Everything that README.md and README.zh-CN.md tell readers to type exists: targets of make,
// scripts, commands of the program and their flags. Other tests check their behaviour.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/run_program.h"

namespace outrider::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Lines of fenced blocks, and words in backquotes: what a reader may type.
std::vector<std::string> typed_words(const std::string& page) {
  std::vector<std::string> typed;
  std::istringstream lines(page);
  bool in_block = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      in_block = !in_block;
    } else if (in_block) {
      typed.push_back(line);
    } else {
      static const std::regex code("`([^`]+)`");
      for (std::sregex_iterator at(line.begin(), line.end(), code), end; at != end; ++at) {
        typed.push_back((*at)[1]);
      }
    }
  }
  return typed;
}

std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) {
    found.push_back((*at)[1]);
  }
  return found;
}

// The problem with a line; nothing for a line that is no command.
std::string problem_of(const std::string& typed, const std::string& makefile) {
  for (const std::string& target : matches(typed, "^make ([a-z-]+)")) {
    if (("\n" + makefile).find("\n" + target + ":") == std::string::npos) {
      return "make has no target " + target;
    }
  }
  for (const std::string& script : matches(typed, "(?:^|\\s)(scripts/[a-z-]+)")) {
    if (!fs::is_regular_file(fs::path(OUTRIDER_SOURCE_DIR) / script)) return script + ": not there";
  }
  for (const std::string& command : matches(typed, "^(?:\\$ )?(?:build/)?outrider ([a-z]+)")) {
    const ProgramRun help = run_program({command, "--help-all"});
    if (help.status != 0) return "outrider has no command " + command;
    for (const std::string& flag : matches(typed, "\\s(--[a-z-]+)")) {
      if (!std::regex_search(help.out, std::regex(flag + "[ \\n]")) && flag != "--help") {
        return "outrider " + command + " has no flag " + flag;
      }
    }
  }
  return {};
}

class ReadmeCommands : public ::testing::TestWithParam<const char*> {};

TEST_P(ReadmeCommands, Exist) {
  const fs::path root(OUTRIDER_SOURCE_DIR);
  const std::string makefile = read_text(root / "Makefile");
  int n_commands = 0;
  for (const std::string& typed : typed_words(read_text(root / GetParam()))) {
    EXPECT_THAT(problem_of(typed, makefile), IsEmpty()) << typed;
    if (std::regex_search(typed, std::regex("^(make|build/outrider|scripts/)"))) ++n_commands;
  }
  EXPECT_GE(n_commands, 5);
}

INSTANTIATE_TEST_SUITE_P(, ReadmeCommands, ::testing::Values("README.md", "README.zh-CN.md"),
                         [](const auto& info) {
                           return std::string(info.param) == "README.md" ? "English" : "Chinese";
                         });

TEST(ReadmeCommandsTest, FindsWhatDoesNotExist) {
  const std::string makefile = "demo:  ## it\n";
  EXPECT_THAT(problem_of("make demo     # words", makefile), IsEmpty());
  EXPECT_THAT(problem_of("make tea", makefile), HasSubstr("tea"));
  EXPECT_THAT(problem_of("scripts/none", makefile), HasSubstr("scripts/none"));
  EXPECT_THAT(problem_of("outrider frob", makefile), HasSubstr("frob"));
  EXPECT_THAT(problem_of("build/outrider generate --model m --frob", makefile),
              HasSubstr("--frob"));
  EXPECT_THAT(problem_of("$ build/outrider generate --model m --kv-memory 1G", makefile),
              IsEmpty());
}

}  // namespace
}  // namespace outrider::test
