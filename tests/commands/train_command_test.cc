// SPDX-License-Identifier: Apache-2.0
// `outrider train`: the vocabulary trainer as its users see it, and how outrider-train is found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
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
using Words = std::vector<std::string>;

// One line on standard error that begins with the program's name; nothing on standard output.
void expect_refused(const ProgramRun& run, int status, const std::string& words) {
  EXPECT_EQ(run.status, status) << run.err;
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  EXPECT_THAT(run.err, AllOf(StartsWith("outrider: "), HasSubstr(words)));
}

void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Numbers counted in words: as many lines as requested, all different.
std::string counting(int n_lines) {
  constexpr const char* kDigits[] = {"zero", "one", "two",   "three", "four",
                                     "five", "six", "seven", "eight", "nine"};
  std::string text;
  for (int line = 0; line < n_lines; ++line) {
    for (const char digit : std::to_string(line)) text += std::string(kDigits[digit - '0']) + " ";
    text += "comes before the next.\n";
  }
  return text;
}

// ---- tokenizer

class TrainTokenizer : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(text(), counting(2000));
    const ProgramRun run = run_program(words({"--vocabulary", "300", "--out", at("probe")}));
    if (run.err.find("SentencePiece") != std::string::npos) GTEST_SKIP() << run.err;
  }
  std::string at(const std::string& name) const { return (root_.path() / name).string(); }
  std::string text() const { return at("text"); }
  Words words(const Words& more) const {
    Words all = {"train", "tokenizer", "--text", text()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  TemporaryDirectory root_;
};

TEST_F(TrainTokenizer, WritesADirectoryThatTokenizeReads) {
  const ProgramRun run = run_program(words({"--vocabulary", "320", "--out", at("new/tok")}));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, IsEmpty());
  EXPECT_THAT(run.out, HasSubstr("320 pieces from 2000 lines"));
  EXPECT_FALSE(fs::exists(at("new/tok/tokenizer.model")));
  const std::string story = "  one two\n\xE4\xBD\xA0 </ 77";
  const ProgramRun ids =
      run_program({"tokenize", "--model", at("new/tok"), "--ids", "--text", story});
  EXPECT_THAT(ids.out, StartsWith("1 "));
  EXPECT_EQ(run_program({"tokenize", "--model", at("new/tok"), "--decode", ids.out}).out,
            story + "\n");
}

TEST_F(TrainTokenizer, TheSameFlagsGiveTheSameFiles) {
  const auto files = [this](const std::string& name, const Words& more) {
    Words all = words({"--vocabulary", "310", "--keep-model", "--out", at(name)});
    all.insert(all.end(), more.begin(), more.end());
    EXPECT_EQ(run_program(all).status, 0);
    return read_file(at(name + "/tokenizer.json")) + read_file(at(name + "/tokenizer.model"));
  };
  EXPECT_EQ(files("a", {}), files("b", {}));
  EXPECT_EQ(files("c", {"--max-lines", "100", "--seed", "7"}),
            files("d", {"--max-lines", "100", "--seed", "7"}));
  EXPECT_NE(read_file(at("c/tokenizer.json")), read_file(at("a/tokenizer.json")));
}

TEST_F(TrainTokenizer, RefusesInOneLine) {
  struct Case {
    Words more;
    int status;
    std::string message;
  };
  const std::string out = at("out");
  write_file(at("empty"), "");
  write_file(at("binary"),
             "\x7F"
             "ELF\xFF\xFE");
  const std::vector<Case> cases = {
      {{"--out", out}, 2, "--vocabulary"},
      {{"--vocabulary", "300"}, 2, "--out"},
      {{"--vocabulary", "259", "--out", out}, 2, "260"},
      {{"--vocabulary", "many", "--out", out}, 2, "--vocabulary"},
      {{"--vocabulary", "262", "--out", out}, 2, "at least"},
      {{"--vocabulary", "32000", "--out", out}, 2, "at most"},
      {{"--vocabulary", "300", "--out", ""}, 2, "--out"},
      {{"--vocabulary", "300", "--out", out, "--text", ""}, 2, "--text"},
      {{"--vocabulary", "300", "--out", out, "--coverage", "0.5"}, 2, "[0.98, 1]"},
      {{"--vocabulary", "300", "--out", out, "--coverage", "nan"}, 2, "[0.98, 1]"},
      {{"--vocabulary", "300", "--out", out, "--max-lines", "0"}, 2, "--max-lines"},
      {{"--vocabulary", "300", "--out", out, "--seed", "1"}, 2, "--max-lines"},
      {{"--vocabulary", "300", "--out", out, "stray"}, 2, "stray"},
      {{"--vocabulary", "300", "--out", out, "--text", at("nowhere")}, 1, "nowhere"},
      {{"--vocabulary", "300", "--out", out, "--text", root_.path()}, 1, "regular file"},
      {{"--vocabulary", "300", "--out", out, "--text", at("binary")}, 1, "UTF-8"},
      {{"--vocabulary", "300", "--out", text()}, 1, "Not a directory"},
      {{"--vocabulary", "300", "--out", text() + "/below"}, 1, "Not a directory"},
      {{"--vocabulary", "300", "--out", "/proc/nowhere"}, 1, "/proc"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(::testing::PrintToString(one.more));
    expect_refused(run_program(words(one.more)), one.status, one.message);
    EXPECT_FALSE(fs::exists(out));
  }
  expect_refused(run_program({"train", "tokenizer", "--vocabulary", "300", "--out", out}), 2,
                 "--text");
  expect_refused(run_program({"train", "tokenizer", "--text", at("empty"), "--vocabulary", "300",
                              "--out", out}),
                 1, "at least one line of text");
}

TEST_F(TrainTokenizer, ATokenizerThatIsThereStaysUnlessForced) {
  const Words all = words({"--vocabulary", "300", "--out", at("tok")});
  ASSERT_EQ(run_program(all).status, 0);
  write_file(at("tok/tokenizer.json"), "mine");
  expect_refused(run_program(all), 1, "--force");
  EXPECT_EQ(read_file(at("tok/tokenizer.json")), "mine");
  Words forced = all;
  forced.emplace_back("--force");
  EXPECT_EQ(run_program(forced).status, 0);
  EXPECT_THAT(read_file(at("tok/tokenizer.json")), HasSubstr("merges"));
}

// A file may not grow beyond the shell's limit, as on a full disk.
TEST_F(TrainTokenizer, AFullDiskLeavesNothing) {
  const std::string command = std::string("ulimit -f 4; exec ") + OUTRIDER_PROGRAM +
                              " train tokenizer --vocabulary 320 --text '" + text() + "' --out '";
  expect_refused(run_program({"-c", command + at("full") + "'"}, {.program = "/bin/sh"}), 1,
                 "tokenizer.json: File too large");
  EXPECT_FALSE(fs::exists(at("full")));

  ASSERT_EQ(run_program(words({"--vocabulary", "300", "--out", at("old")})).status, 0);
  const std::string old = read_file(at("old/tokenizer.json"));
  expect_refused(run_program({"-c", command + at("old") + "' --force"}, {.program = "/bin/sh"}), 1,
                 "tokenizer.json: File too large");
  EXPECT_EQ(read_file(at("old/tokenizer.json")), old);
  for (const auto& entry : fs::recursive_directory_iterator(root_.path())) {
    EXPECT_THAT(entry.path().string(), Not(HasSubstr(".part")));
  }
}

TEST_F(TrainTokenizer, AnInterruptLeavesAllOrNothing) {
  write_file(text(), counting(60000));
  bool interrupted = false;
  for (int wait = 400; wait >= 25 && !interrupted; wait /= 2) {
    const std::string out = at(std::to_string(wait));
    const ProgramRun run = run_program(words({"--vocabulary", "330", "--out", out}),
                                       {.interrupt_after = std::chrono::milliseconds(wait)});
    interrupted = run.status == 130;
    EXPECT_EQ(run.status, interrupted ? 130 : 0);
    EXPECT_EQ(fs::exists(out + "/tokenizer.json"), !interrupted);
    EXPECT_EQ(fs::exists(out), !interrupted);
  }
  EXPECT_TRUE(interrupted) << "every run ended before its interrupt";
  for (const auto& entry : fs::recursive_directory_iterator(root_.path())) {
    EXPECT_THAT(entry.path().string(), Not(HasSubstr(".part")));
  }
}

// ---- outrider-train

// A copy of the program in a folder of its own, without an outrider-train built beside it. PATH
// holds only what the test puts there.
class TrainerProgram : public ::testing::Test {
 protected:
  TrainerProgram() {
    fs::create_directory(home());
    fs::create_directory(elsewhere());
    fs::copy_file(OUTRIDER_PROGRAM, home() / "outrider");
    if (const char* path = std::getenv("PATH")) old_path_ = path;
    ::setenv("PATH", ("/nowhere::" + elsewhere().string()).c_str(), 1);
  }
  ~TrainerProgram() override {
    if (old_path_) {
      ::setenv("PATH", old_path_->c_str(), 1);
    } else {
      ::unsetenv("PATH");
    }
  }
  fs::path home() const { return root_.path() / "home"; }
  fs::path elsewhere() const { return root_.path() / "elsewhere"; }
  static void write_script(const fs::path& path, const std::string& lines) {
    write_file(path, "#!/bin/sh\n" + lines);
    fs::permissions(path, fs::perms::owner_all);
  }
  ProgramRun run(const Words& words, const std::string& standard_input = "") const {
    return run_program(
        words, {.program = (home() / "outrider").string(), .standard_input = standard_input});
  }

 private:
  TemporaryDirectory root_;
  std::optional<std::string> old_path_;
};

constexpr const char* kShowWords = "for word in \"$@\"; do echo \"[$word]\"; done\n";

TEST_F(TrainerProgram, MissingItIsOneLineThatSaysWhatToDo) {
  for (const Words& words : {Words{"train", "lm", "--help"}, Words{"train", "router"}}) {
    expect_refused(run(words), 1, "scripts/install-deps train");
  }
  // Neither a folder of that name nor a file that is not executable will do.
  fs::create_directory(home() / "outrider-train");
  write_file(elsewhere() / "outrider-train", "#!/bin/sh\n");
  fs::permissions(elsewhere() / "outrider-train", fs::perms::owner_read);
  expect_refused(run({"train", "distill"}), 1, "outrider-train");
}

TEST_F(TrainerProgram, GetsTheWordsAsTheyStand) {
  write_script(elsewhere() / "outrider-train", kShowWords);
  for (const char* const what : {"lm", "distill", "eagle", "dflash", "dspark", "medusa", "mtp",
                                 "pard", "online", "seq2seq", "router"}) {
    SCOPED_TRACE(what);
    const ProgramRun given = run({"train", what, "--help", "", "a b", "--", "tokenizer", "generate",
                                  "-x=3", "[1,2]", "\xFF", "lm"});
    EXPECT_EQ(given.status, 0) << given.err;
    EXPECT_THAT(given.err, IsEmpty());
    EXPECT_EQ(given.out, std::string("[") + what +
                             "]\n[--help]\n[]\n[a b]\n[--]\n[tokenizer]\n[generate]\n[-x=3]\n"
                             "[[1,2]]\n[\xFF]\n[lm]\n");
  }
}

TEST_F(TrainerProgram, TheOneBesideTheProgramComesFirst) {
  write_script(elsewhere() / "outrider-train", "echo elsewhere\n");
  EXPECT_EQ(run({"train", "lm"}).out, "elsewhere\n");
  write_script(home() / "outrider-train", "echo home\n");
  EXPECT_EQ(run({"train", "lm"}).out, "home\n");
}

TEST_F(TrainerProgram, ExitStatusSignalsAndStreamsAreItsOwn) {
  const fs::path script = elsewhere() / "outrider-train";
  write_script(script, "read line; echo \"$line\"; echo oh >&2; exit 7\n");
  const ProgramRun ended = run({"train", "eagle"}, "a line\n");
  EXPECT_EQ(ended.status, 7);
  EXPECT_EQ(ended.out, "a line\n");
  EXPECT_EQ(ended.err, "oh\n");
  write_script(script, "kill -TERM $$\n");
  EXPECT_EQ(run({"train", "eagle"}).status, 128 + 15);
  // Signals that outrider itself ignores are not ignored there: SIGPIPE is bit 12, SIGXFSZ bit 24.
  write_script(script,
               "while read name mask; do [ $name = SigIgn: ] && echo $mask; done < "
               "/proc/$$/status\nexit 0\n");
  const std::string mask = run({"train", "eagle"}).out;
  EXPECT_EQ(std::stoull(mask, nullptr, 16) & (1U << 12 | 1U << 24), 0U) << mask;
}

TEST_F(TrainerProgram, OneThatCannotStartIsAnError) {
  write_script(home() / "outrider-train", "");
  write_file(home() / "outrider-train", "#!/nowhere/sh\n");
  expect_refused(run({"train", "lm"}), 1, "outrider-train: No such file");
}

TEST_F(TrainerProgram, TheListOfCommandsNeedsNone) {
  const ProgramRun help = run({"train", "--help"});
  EXPECT_EQ(help.status, 0);
  for (const char* const what :
       {"tokenizer", "answers", "lm", "distill", "eagle", "dflash", "dspark", "medusa", "mtp",
        "pard", "online", "seq2seq", "router"}) {
    EXPECT_THAT(help.out, HasSubstr(std::string("\n  ") + what + " ")) << what;
  }
  expect_refused(run({"train"}), 2, "one of tokenizer, answers, lm");
  expect_refused(run({"train", "seriously"}), 2, "seriously");
}

}  // namespace
}  // namespace outrider::test
