// SPDX-License-Identifier: Apache-2.0
// Online learning as its users see it: a log written by `generate` and `chat`, training on it, and
// the drafter loaded again.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "io/verdict_log.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/models/tiny_pair.h"
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

std::int64_t n_lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class VerdictLogProgram : public ::testing::Test {
 protected:
  VerdictLogProgram() { write_tiny_pair(root_.path()); }
  std::string at(const std::string& name) const { return (root_.path() / name).string(); }
  Words generate(const std::string& drafter, const std::string& prompt,
                 const Words& more = {}) const {
    return joined({"generate", "--model", at("target"), "--drafter", drafter, "--prompt", prompt,
                   "--max-tokens", "40", "--ignore-eos", "--threads", "1"},
                  more);
  }
  // A command that either of the two programs refuses in one line.
  void expect_refused(const Words& words, int status, const std::string& what) const {
    const ProgramRun run = run_program(words);
    EXPECT_EQ(run.status, status) << run.err;
    EXPECT_THAT(run.out, IsEmpty());
    EXPECT_EQ(n_lines(run.err), 1) << run.err;
    EXPECT_THAT(run.err, AllOf(StartsWith("outrider"), HasSubstr(what)));
  }
  TemporaryDirectory root_;
};

class TrainOnline : public VerdictLogProgram {
 protected:
  void SetUp() override {
    if (!fs::exists(fs::path(OUTRIDER_PROGRAM).parent_path() / "outrider-train")) {
      GTEST_SKIP() << "built without libtorch: no outrider-train";
    }
  }
  Words train(const std::string& out, const Words& more = {}, const char* steps = "120",
              const char* length = "64") const {
    return joined({"train",       "online", "--log",     at("log"), "--drafter",       at("draft"),
                   "--out",       at(out),  "--steps",   steps,     "--batch",         "8",
                   "--length",    length,   "--threads", "1",       "--learning-rate", "3e-3",
                   "--precision", "f32",    "--export",  "f32"},
                  more);
  }
};

const std::vector<std::string>& prompts() {
  static const std::vector<std::string> kAll = {"The first of them", "A second one", "Third",
                                                "And a fourth, longer than the others"};
  return kAll;
}

TEST_F(VerdictLogProgram, TheLogDoesNotShowInWhatIsSaid) {
  const std::string drafter = "model:" + at("draft");
  for (const std::string& prompt : prompts()) {
    const ProgramRun without = run_program(generate(drafter, prompt));
    const ProgramRun with = run_program(generate(drafter, prompt, {"--verdict-log", at("log")}));
    EXPECT_EQ(with.status, 0) << with.err;
    EXPECT_EQ(with.out, without.out);
    EXPECT_THAT(with.err, IsEmpty());
  }
  const auto texts = VerdictLogReader(at("log")).read_new();
  ASSERT_EQ(texts.size(), prompts().size());
  for (const LoggedText& text : texts) EXPECT_EQ(text.n_generated(), 40);
}

TEST_F(VerdictLogProgram, RefusesInOneLine) {
  const Words base = {"generate", "--model", at("target"), "--prompt", "a", "--max-tokens", "2"};
  expect_refused(joined(base, {"--verdict-log-top", "3"}), 2, "--verdict-log DIR");
  expect_refused(joined(base, {"--verdict-log", at("log"), "--verdict-log-top", "0"}), 2, "top");
  expect_refused(joined(base, {"--verdict-log", ""}), 2, "--verdict-log");
  expect_refused(joined(base, {"--verdict-log", at("target/config.json")}), 1, "Not a directory");
  expect_refused(joined(base, {"--verdict-log", "/proc/nowhere"}), 1, "/proc/nowhere");
  ASSERT_EQ(run_program(joined(base, {"--verdict-log", at("log")})).status, 0);
  expect_refused(joined(base, {"--verdict-log", at("log"), "--verdict-log-top", "3"}), 1,
                 "as the log was begun");
  write_hugging_face(make_tiny_model({}), at("other"));
  expect_refused({"generate", "--model", at("other"), "--prompt", "a", "--verdict-log", at("log")},
                 1, "vocabulary");
  const VerdictLogFormat format = [&] {
    VerdictLogReader reader(at("log"));
    reader.read_new();
    return *reader.format();
  }();
  const VerdictLogWriter busy(at("log"), format, 1 << 20);
  expect_refused(joined(base, {"--verdict-log", at("log")}), 1, "in use");
}

// A file-size limit simulates a full disk: one line, the whole answer, success.
TEST_F(VerdictLogProgram, AFullDiskIsOneWarning) {
  const Words words = generate("model:" + at("draft"), "A second one");
  const ProgramRun without = run_program(words);
  const Words shell = joined({"-c", "ulimit -f 1; exec \"$0\" \"$@\"", OUTRIDER_PROGRAM},
                             joined(words, {"--verdict-log", at("log")}));
  const ProgramRun with = run_program(shell, {.program = "/bin/sh"});
  EXPECT_EQ(with.status, 0);
  EXPECT_EQ(with.out, without.out);
  EXPECT_EQ(n_lines(with.err), 1) << with.err;
  EXPECT_THAT(with.err, AllOf(HasSubstr("File too large"), HasSubstr("nothing more is recorded")));
}

// Killed at any moment, the log is complete except for the text in progress.
TEST_F(VerdictLogProgram, KilledAnywhereTheLogHoldsWholeTexts) {
  Words words = joined({OUTRIDER_PROGRAM},
                       generate("model:" + at("draft"), "Third", {"--verdict-log", at("log")}));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::mt19937 random(1);
  // From before the model is loaded to after the end, on an idle machine.
  std::uniform_int_distribution<int> moment(0, 400);
  std::size_t n_texts = 0;
  for (int attempt = 0; attempt < 20; ++attempt) {
    const pid_t child = ::fork();
    if (child == 0) {
      const int nothing = ::open("/dev/null", O_RDWR);
      ::dup2(nothing, STDOUT_FILENO);
      ::dup2(nothing, STDERR_FILENO);
      ::execv(OUTRIDER_PROGRAM, arguments.data());
      ::_exit(127);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(moment(random)));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!fs::exists(at("log"))) continue;
    const auto texts = VerdictLogReader(at("log")).read_new();
    EXPECT_GE(texts.size(), n_texts);
    EXPECT_LE(texts.size(), n_texts + 1);
    for (const LoggedText& text : texts) EXPECT_EQ(text.n_generated(), 40);
    n_texts = texts.size();
  }
  const ProgramRun last =
      run_program(generate("model:" + at("draft"), "Third", {"--verdict-log", at("log")}));
  EXPECT_EQ(last.status, 0) << last.err;
  EXPECT_EQ(VerdictLogReader(at("log")).read_new().size(), n_texts + 1);
}

TEST_F(TrainOnline, WhatWasLearnedIsAcceptedMoreOften) {
  const auto acceptance = [&](const std::string& drafter, const Words& more = {}) {
    std::int64_t drafted = 0;
    std::int64_t accepted = 0;
    for (const std::string& prompt : prompts()) {
      const ProgramRun run =
          run_program(generate("model:" + drafter, prompt, joined({"--json"}, more)));
      EXPECT_EQ(run.status, 0) << run.err;
      const auto json = nlohmann::json::parse(run.out);
      drafted += json["stats"]["drafted"].get<std::int64_t>();
      accepted += json["stats"]["accepted"].get<std::int64_t>();
    }
    return static_cast<double>(accepted) / static_cast<double>(drafted);
  };
  const double before = acceptance(at("draft"), {"--verdict-log", at("log")});
  const ProgramRun trained = run_program(train("tuned", {"--held-out-share", "0"}));
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.err, HasSubstr("160 judged tokens in 4 texts"));
  EXPECT_TRUE(fs::exists(at("tuned/training/log.jsonl")));
  const double after = acceptance(at("tuned"));
  EXPECT_GT(after, before + 0.1);
  // The weak drafter, and the better one loaded in its place.
  const ProgramRun swapped =
      run_program(generate("model:" + at("draft") + ",updates=" + at("tuned"), prompts()[0]));
  EXPECT_EQ(swapped.status, 0);
  EXPECT_THAT(swapped.err, HasSubstr("a new drafter is in use"));
  EXPECT_EQ(swapped.out, run_program(generate("none", prompts()[0])).out);

  // A log that has grown belongs to another run; only a run that follows the log can resume.
  const Words more = generate("model:" + at("draft"), "More", {"--verdict-log", at("log")});
  ASSERT_EQ(run_program(more).status, 0);
  expect_refused(train("tuned", {"--held-out-share", "0", "--resume"}), 1, "texts");
}

// The trainer follows a log that is empty at first, replaces the drafter's own files, and ends when
// told to.
TEST_F(TrainOnline, FollowsALogThatIsBeingWritten) {
  fs::create_directory(at("log"));
  Words words =
      joined({OUTRIDER_PROGRAM}, train("draft", {"--follow", "--export-every", "5"}, "1000000"));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const std::string err = at("err");
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    ::signal(SIGINT, SIG_DFL);  // a test runner in the background may ignore it
    ::execv(OUTRIDER_PROGRAM, arguments.data());
    ::_exit(127);
  }
  // Works on slow machines: the test waits for events that must come.
  const auto until = [&](const auto& condition) {
    while (!condition() && ::waitpid(child, nullptr, WNOHANG) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return condition();
  };
  const auto weights = [&] {
    std::ifstream file(at("draft/model.safetensors"), std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  const auto said = [&] {
    std::ifstream file(err);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  ASSERT_TRUE(until([&] { return said().find("waiting for texts\n") != std::string::npos; }));
  std::string last = weights();
  for (const std::string& prompt : {prompts()[0], prompts()[1]}) {
    const ProgramRun run = run_program(generate("none", prompt, {"--verdict-log", at("log")}));
    ASSERT_EQ(run.status, 0) << run.err;
    ASSERT_TRUE(until([&] { return weights() != last; }));
    last = weights();
  }
  ::kill(child, SIGINT);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_THAT(said(),
              AllOf(StartsWith(at("log") + ": waiting for texts\n"), HasSubstr("--resume")));
}

TEST_F(TrainOnline, HelpNamesItsOwnFlags) {
  const std::string help = run_program({"train", "online", "--help"}).out;
  EXPECT_THAT(help, AllOf(HasSubstr("--held-out-share"), Not(HasSubstr("--held-out;"))));
}

// A terminal shows what an idle run waits for.
TEST_F(TrainOnline, SaysOnATerminalWhatItWaitsFor) {
  fs::create_directory(at("log"));
  Words words = joined({OUTRIDER_PROGRAM},
                       train("tuned", {"--follow", "--export-every", "2", "--held-out-share", "0"},
                             "1000000", "16"));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGINT, SIG_DFL);  // a test runner in the background may ignore it
    ::execv(OUTRIDER_PROGRAM, arguments.data());
    ::_exit(127);
  }
  std::string seen;
  const auto until = [&](const std::string& what) {
    while (seen.find(what) == std::string::npos) {
      char bytes[256];
      const ssize_t n_read = ::read(terminal, bytes, sizeof bytes);
      if (n_read <= 0) return false;  // the program has ended
      seen.append(bytes, static_cast<std::size_t>(n_read));
    }
    return true;
  };
  EXPECT_TRUE(until(": 0 texts so far, waiting for some to learn from")) << seen;
  const ProgramRun run = run_program(generate("none", prompts()[0], {"--verdict-log", at("log")}));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(until(": 1 text so far, waiting for new ones")) << seen;
  ::kill(child, SIGINT);
  EXPECT_TRUE(until("--resume")) << seen;
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 130);
  ::close(terminal);
}

TEST_F(TrainOnline, RefusesInOneLine) {
  expect_refused(train("out"), 1, "--verdict-log");  // missing
  fs::create_directory(at("log"));
  expect_refused(train("out"), 1, "expected texts to learn from, got none");
  expect_refused(train("out", {"--held-out-share", "1"}), 2, "held-out-share");
  expect_refused(train("out", {}, "1", "4096"), 2, "context");
  ASSERT_EQ(run_program(generate("none", "a", {"--verdict-log", at("log")})).status, 0);
  expect_refused(train("out", {"--held-out-share", "0.999999"}), 1, "only held out ones");
  write_hugging_face(make_tiny_model({}), at("other"));
  Words words = train("out");
  std::replace(words.begin(), words.end(), at("draft"), at("other"));
  expect_refused(words, 1, "vocabulary");
  std::replace(words.begin(), words.end(), at("other"), at("nowhere"));
  expect_refused(words, 1, "nowhere");
  EXPECT_FALSE(fs::exists(at("out")));
}

// ---- chat

// Two messages. The drafter's files are replaced between the answers: the second message is written
// once the first answer is there.
class ChatUpdates : public VerdictLogProgram {
 protected:
  ChatUpdates() {
    TinyShape shape;
    shape.seed = 5;
    const TinyModel model = make_tiny_model(shape);
    write_hugging_face(model, at("chatty"));
    write_hugging_face(with_noise(model, 0.3F, 6), at("small"));
    const nlohmann::json config = {
        {"chat_template",
         "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + "
         "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{{ '<|im_start|>assistant\n' }}"}};
    std::ofstream(at("chatty") + "/tokenizer_config.json") << config.dump();
  }
  ProgramRun chat(const std::string& between) const {
    const std::string script =
        "mkfifo in; exec 4<>in; " + std::string(OUTRIDER_PROGRAM) +
        " chat --model chatty --drafter model:small,updates=tuned --max-tokens 8 --ignore-eos"
        " --threads 1 --verdict-log log <in 4>&- >out & "
        "program=$!; exec 3>in; echo hello >&3; "
        "until [ -s out ] && [ $(wc -l <out) -ge 1 ]; do sleep 0.05; done; " +
        between + "; echo and >&3; exec 3>&- 4>&-; wait $program; status=$?; cat out; exit $status";
    return run_program({"-c", "cd '" + root_.path().string() + "'; " + script},
                       {.program = "/bin/sh"});
  }
};

TEST_F(ChatUpdates, TakesUpANewDrafterBetweenTwoAnswers) {
  const ProgramRun same = chat("true");
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_THAT(same.err, Not(HasSubstr("drafter")));
  EXPECT_EQ(VerdictLogReader(at("log")).read_new().size(), 2U);
  fs::remove(at("in"));
  const ProgramRun taken = chat("cp -r chatty partial && mv partial tuned");
  EXPECT_EQ(taken.status, 0) << taken.err;
  EXPECT_THAT(taken.err, HasSubstr("(a new drafter is in use)\n"));
  EXPECT_EQ(taken.out, same.out);
  fs::remove(at("in"));
  fs::remove_all(at("tuned"));
  const ProgramRun broken = chat("mkdir tuned && echo {} >tuned/config.json");
  EXPECT_EQ(broken.status, 0) << broken.err;
  EXPECT_EQ(n_lines(broken.err), n_lines(same.err) + 1) << broken.err;
  EXPECT_THAT(broken.err, HasSubstr("the drafter stays as it was\n"));
  EXPECT_EQ(broken.out, same.out);
}

}  // namespace
}  // namespace outrider::test
