// SPDX-License-Identifier: Apache-2.0
// outrider completion and outrider man: the shells and formatters for which they print read the
// output. Shells that are not installed are skipped (scripts/install-deps docs).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// A folder with the completion script of a shell.
class Completion : public ::testing::Test {
 protected:
  void write_completion(const std::string& shell, const std::string& file) {
    const ProgramRun run = run_program({"completion", shell});
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.err, IsEmpty());
    write(file, run.out);
  }
  void write(const std::string& file, const std::string& text) {
    std::ofstream(folder_.path() / file) << text;
  }
  std::string path(const std::string& file = "") const { return (folder_.path() / file).string(); }
  // Runs a script by the shell at this path; returns the output.
  std::string run_script(const std::string& shell, const std::vector<std::string>& flags,
                         const std::string& script) {
    write("script", script);
    std::vector<std::string> words = flags;
    words.push_back(path("script"));
    const ProgramRun run = run_program(words, {.program = shell});
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.err, IsEmpty());
    return run.out;
  }

 private:
  TemporaryDirectory folder_;
};

TEST_F(Completion, Bash) {
  const std::string bash = installed_program("bash");
  if (bash.empty()) GTEST_SKIP() << "bash is not installed";
  write_completion("bash", "outrider.bash");
  write("novel.gguf", "");
  const std::string script = "cd '" + path() + R"('
source ./outrider.bash
complete -p outrider
try() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _outrider
  echo "$*: ${COMPREPLY[*]}"
}
try outrider gen
try outrider generate --prompt-f
try outrider generate --weights i
try outrider generate --weights = i
try outrider generate -m nov
try outrider generate --prompt chat --json-s
try outrider generate --drafter suf
try outrider datastore b
try outrider tune --text tree --sec
try outrider tune tree --bud
try outrider train tok
try outrider completion z
try outrider drafters looka
try outrider generate --prompt a
)";
  const std::string out = run_script(bash, {"--norc"}, script);
  for (const char* const line :
       {"complete -F _outrider outrider", "outrider gen: generate",
        "outrider generate --prompt-f: --prompt-file", "outrider generate --weights i: int8 int4",
        "outrider generate --weights = i: int8 int4", "outrider generate -m nov: novel.gguf",
        "outrider generate --prompt chat --json-s: --json-schema",
        "outrider generate --drafter suf: suffix", "outrider datastore b: build",
        "outrider tune --text tree --sec: --seconds", "outrider tune tree --bud: --budget",
        "outrider train tok: tokenizer", "outrider completion z: zsh",
        "outrider drafters looka: lookahead", "outrider generate --prompt a: "}) {
    EXPECT_THAT(out, HasSubstr(std::string(line) + "\n"));
  }
}

// In an interactive shell on a terminal of its own, where a function shows its arguments. The
// completion key comes between the typed text and the end of the line.
// Autoloaded, the file calls the function that it defines, with the same arguments.
TEST_F(Completion, ZshPassesItsArgumentsOn) {
  const std::string zsh = installed_program("zsh");
  if (zsh.empty()) GTEST_SKIP() << "zsh is not installed";
  write_completion("zsh", "_outrider");
  const std::string out = run_script(zsh, {"-f"}, "fpath=(" + path() + R"( $fpath)
_arguments() { : }
autoload -Uz _outrider
exec 2>&1
PS4='%N> '
setopt xtrace
_outrider first 'second word'
)");
  EXPECT_THAT(out, HasSubstr("\n_outrider> _outrider first 'second word'"));
}

TEST_F(Completion, Zsh) {
  const std::string zsh = installed_program("zsh");
  if (zsh.empty()) GTEST_SKIP() << "zsh is not installed";
  if (run_program({"-f", "-c", "zmodload zsh/zpty"}, {.program = zsh}).status != 0) {
    GTEST_SKIP() << "zsh has no module zsh/zpty";
  }
  write_completion("zsh", "_outrider");
  EXPECT_EQ(run_program({"-n", path("_outrider")}, {.program = zsh}).status, 0);
  const std::string script = R"(zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1=; stty -echo; fpath=()" +
                             path() + R"( \$fpath); autoload -Uz compinit"
zpty -w shell "compinit -u -D; bindkey '^I' complete-word; outrider() { print -r \"<\$*>\" }"
for line in 'outrider gener' 'outrider generate --prompt-f' 'outrider generate --ignore' \
            'outrider tune tr' 'outrider completion fi'; do
  zpty -w -n shell $line$'\t\n'
done
zpty -w shell 'print en''d'
while zpty -r shell line; do
  print -r -- "$line"
  [[ $line == *end* ]] && break
done
zpty -d shell
)";
  const std::string out = run_script(zsh, {"-f"}, script);
  for (const char* const words : {"<generate>", "<generate --prompt-file", "<generate --ignore-eos",
                                  "<tune tree>", "<completion fish>"}) {
    EXPECT_THAT(out, HasSubstr(words));
  }
}

TEST_F(Completion, Fish) {
  const std::string fish = installed_program("fish");
  if (fish.empty()) GTEST_SKIP() << "fish is not installed";
  write_completion("fish", "outrider.fish");
  const std::string script = "source " + path("outrider.fish") + R"(
for line in "outrider gen" "outrider generate --prompt-f" "outrider generate --weights i" \
            "outrider tune tree --bud" "outrider train tok" "outrider generate --sec"
    echo "<$line>" (complete -C $line | string replace -r '\t.*' '')
end
)";
  const std::string out = run_script(fish, {"--no-config"}, script);
  for (const char* const line :
       {"<outrider gen> generate", "<outrider generate --prompt-f> --prompt-file",
        "<outrider generate --weights i> int4 int8", "<outrider tune tree --bud> --budget",
        "<outrider train tok> tokenizer", "<outrider generate --sec>"}) {
    EXPECT_THAT(out, HasSubstr(std::string(line) + "\n"));
  }
}

TEST_F(Completion, OtherShellsAreRefused) {
  const ProgramRun run = run_program({"completion", "csh"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("expected one of bash, zsh, fish, got csh"));
  EXPECT_EQ(run_program({"completion"}).status, 2);
}

TEST(ManualPages, OneForEachCommand) {
  const TemporaryDirectory folder;
  const fs::path pages = folder.path() / "man1";
  const ProgramRun run = run_program(
      {"-c", "SOURCE_DATE_EPOCH=86400 exec '" OUTRIDER_PROGRAM "' man '" + pages.string() + "'"},
      {.program = "/bin/sh"});
  ASSERT_EQ(run.status, 0) << run.err;
  const auto read = [&pages](const std::string& name) {
    std::ifstream file(pages / name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_THAT(read("outrider-generate.1"),
              AllOf(StartsWith(".TH OUTRIDER\\-GENERATE 1 1970-01-02 \"outrider "),
                    HasSubstr("\\fB\\-\\-kv\\-memory\\fR \\fIBYTES\\fR"), HasSubstr(".SH EXAMPLES"),
                    HasSubstr(".BR outrider (1)")));
  EXPECT_THAT(read("outrider.1"),
              AllOf(HasSubstr(".BR outrider\\-generate (1),"), Not(HasSubstr("outrider\\-man"))));
  EXPECT_THAT(read("outrider-tune-tree.1"), HasSubstr("outrider\\-tune (1)"));
  const auto n_pages = std::distance(fs::directory_iterator(pages), fs::directory_iterator());
  EXPECT_GE(n_pages, 1 + 17 + 2 + 2 + 13);
}

TEST(ManualPages, ReadWithoutAWarning) {
  const TemporaryDirectory folder;
  ASSERT_EQ(run_program({"man", folder.path().string()}).status, 0);
  const std::string mandoc = installed_program("mandoc");
  const std::string groff = installed_program("groff");
  if (mandoc.empty() && groff.empty()) GTEST_SKIP() << "neither mandoc nor groff is installed";
  for (const fs::directory_entry& page : fs::directory_iterator(folder.path())) {
    SCOPED_TRACE(page.path().filename());
    if (!mandoc.empty()) {
      const ProgramRun lint =
          run_program({"-T", "lint", "-W", "warning", page.path().string()}, {.program = mandoc});
      EXPECT_EQ(lint.status, 0);
      EXPECT_THAT(lint.out, IsEmpty());
    }
    if (!groff.empty()) {
      const ProgramRun text =
          run_program({"-man", "-ww", "-K", "utf8", "-T", "utf8", "-z", page.path().string()},
                      {.program = groff});
      EXPECT_THAT(text.err, IsEmpty());
    }
  }
}

}  // namespace
}  // namespace outrider::test
