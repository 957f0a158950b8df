// SPDX-License-Identifier: Apache-2.0
// `outrider train lm` and `distill` as their users see them: killed at any moment, given invalid
// input, without disk space.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/models/tiny_model.h"
#include "tests/support/models/tiny_tokenizer.h"
#include "tests/support/nightly.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class TrainRun : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(fs::path(OUTRIDER_PROGRAM).parent_path() / "outrider-train")) {
      GTEST_SKIP() << "built without libtorch: no outrider-train";
    }
    fs::create_directories(root_.path() / "tokenizer");
    write("tokenizer/tokenizer.json", tokenizer_json(make_tiny_vocabulary(300)));
    std::string text;
    for (int i = 0; i < 400; ++i) {
      text += "The " + std::to_string(i % 17) + " cats saw " + std::to_string(i * 7 % 31) +
              " dogs and went home.\n";
    }
    write("text", text);
  }
  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(root_.path() / name, std::ios::binary) << bytes;
  }
  std::string at(const std::string& name) const { return (root_.path() / name).string(); }

  // A run of one or two seconds.
  Words lm(const std::string& out, const Words& more = {}) const {
    Words words = {"train",     "lm",          "--text",
                   at("text"),  "--tokenizer", at("tokenizer"),
                   "--layers",  "2",           "--dim",
                   "32",        "--heads",     "2",
                   "--steps",   "60",          "--batch",
                   "4",         "--length",    "24",
                   "--threads", "1",           "--checkpoint-every",
                   "3",         "--out",       at(out)};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  TemporaryDirectory root_;
};

// Starts the program and kills it as soon as `is_time` returns true, if it still runs. True if it
// was killed.
template <class IsTime>
bool killed_when(const Words& words, IsTime&& is_time) {
  Words all = words;
  all.insert(all.begin(), OUTRIDER_PROGRAM);
  std::vector<char*> arguments;
  for (std::string& word : all) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const int nothing = ::open("/dev/null", O_RDWR);
    ::dup2(nothing, STDOUT_FILENO);
    ::dup2(nothing, STDERR_FILENO);
    ::execv(OUTRIDER_PROGRAM, arguments.data());
    ::_exit(127);
  }
  int status = 0;
  while (!is_time()) {
    if (::waitpid(child, &status, WNOHANG) == child) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status);
}

bool killed_after(const Words& words, std::chrono::microseconds delay) {
  const auto end = std::chrono::steady_clock::now() + delay;
  return killed_when(words, [&] { return std::chrono::steady_clock::now() >= end; });
}

// Twenty times in nightly runs; by day eight times: a start takes a second.
TEST_F(TrainRun, KilledManyTimesItEndsWithTheSameBits) {
  const int n_kills = nightly() ? 20 : 8;
  using Clock = std::chrono::steady_clock;
  const ProgramRun whole = run_program(lm("whole"));
  ASSERT_EQ(whole.status, 0) << whole.err;
  // Steps that the log records.
  const auto n_steps = [&](const char* run) {
    const std::string log = read_file(root_.path() / run / "training" / "log.jsonl");
    return std::count(log.begin(), log.end(), '\n');
  };
  // Once more, to measure how long a run takes and which part of it is steps: the program may take
  // longer to start than to train.
  const auto began = Clock::now();
  auto first_step = began;
  killed_when(lm("timed"), [&] {
    if (n_steps("timed") == 0) first_step = Clock::now();
    return false;
  });
  ASSERT_EQ(n_steps("timed"), 60);
  const std::chrono::duration<double> seconds = Clock::now() - began;
  const std::chrono::duration<double> step = (Clock::now() - first_step) / 60;
  std::mt19937 random(1);
  const auto uniform = [&](std::chrono::duration<double> end) {
    return std::chrono::duration_cast<std::chrono::microseconds>(
        end * std::uniform_real_distribution<double>(0, 1)(random));
  };
  // Most kills come after some steps and a short delay: while a step is made, logged or saved. How
  // many fit into the run depends on how long this process waits to be scheduled.
  int n_in_steps = 0;
  for (int attempt = 0; attempt < n_kills * 7 / 10 && n_steps("parts") < 45; ++attempt) {
    const auto before = n_steps("parts");
    const auto until = std::uniform_int_distribution<long>(1, 6)(random);
    const auto moment = uniform(step);
    std::optional<Clock::time_point> end;
    // The log is first truncated to the checkpoint, and then grows.
    bool was_cut = before % 3 == 0;
    n_in_steps += killed_when(lm("parts", {"--resume"}), [&] {
      const auto now = n_steps("parts");
      was_cut = was_cut || now < before;
      if (!end && was_cut && now >= before - before % 3 + until) end = Clock::now() + moment;
      return end && Clock::now() >= *end;
    });
  }
  EXPECT_GE(n_in_steps, 3);
  // The others come anywhere: before the steps, and during the writing of the result.
  int n_killed = n_in_steps;
  for (int attempt = 0; attempt < 200 && n_killed < n_kills; ++attempt) {
    n_killed += killed_after(lm("parts", {"--resume"}), uniform(seconds));
  }
  EXPECT_EQ(n_killed, n_kills);
  const ProgramRun last = run_program(lm("parts", {"--resume"}));
  ASSERT_EQ(last.status, 0) << last.err;
  for (const char* name : {"model.safetensors", "config.json", "tokenizer.json"}) {
    const std::string expected = read_file(root_.path() / "whole" / name);
    ASSERT_FALSE(expected.empty()) << name;
    EXPECT_EQ(read_file(root_.path() / "parts" / name), expected) << name;
  }
  // A step is logged once, whatever happened.
  EXPECT_EQ(n_steps("whole"), 60);
  EXPECT_EQ(n_steps("parts"), 60);
  const ProgramRun said = run_program(
      {"generate", "--model", at("parts"), "--prompt", "The", "--max-tokens", "5", "--ignore-eos"});
  EXPECT_EQ(said.status, 0) << said.err;
}

// OpenBLAS names its chosen kernels each time it is loaded; those of the last start count.
TEST_F(TrainRun, MultipliesWithKernelsThatFitTheProcessor) {
  const std::string trainer =
      (fs::path(OUTRIDER_PROGRAM).parent_path() / "outrider-train").string();
  const auto cores_with = [&](const std::string& setting) {
    const ProgramRun run =
        run_program({"-c", "unset OPENBLAS_CORETYPE; " + setting + " OPENBLAS_VERBOSE=2 exec '" +
                               trainer + "' lm --help"},
                    {.program = "/bin/sh"});
    EXPECT_EQ(run.status, 0) << run.err;
    Words cores;
    std::istringstream lines(run.err);
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("Core: ", 0) == 0) cores.push_back(line.substr(6));
    }
    return cores;
  };
  const Words taken = cores_with("");
  if (taken.empty()) GTEST_SKIP() << "no OpenBLAS that names its kernels";
  EXPECT_EQ(cores_with("OPENBLAS_CORETYPE=Nehalem"), Words{"Nehalem"}) << "a user's word stands";
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return;
  EXPECT_THAT((Words{"Haswell", "Excavator", "Zen", "SkylakeX", "Cooperlake", "SapphireRapids"}),
              ::testing::Contains(taken.back()));
}

TEST_F(TrainRun, RefusesWhatCannotBeMeant) {
  const auto expect_refused = [&](const Words& words, int status, const std::string& what) {
    const ProgramRun run = run_program(words);
    EXPECT_EQ(run.status, status) << run.err;
    EXPECT_THAT(run.out, IsEmpty());
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_THAT(run.err, AllOf(StartsWith("outrider-train: "), HasSubstr(what)));
  };
  write("blank", " \n \t\n");
  const Words base = {"train", "lm", "--tokenizer", at("tokenizer"), "--out", at("out")};
  const auto with = [&](Words more) {
    Words words = base;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  expect_refused(with({"--text", at("blank")}), 1, "nothing but blanks");
  expect_refused(with({"--text", at("missing")}), 1, "missing");
  expect_refused(with({}), 2, "either --text or --examples");
  expect_refused(with({"--text", at("text"), "--dim", "33", "--heads", "2"}), 2, "even width");
  expect_refused(with({"--text", at("text"), "--length", "4096"}), 2, "context");
  expect_refused(with({"--text", at("text"), "--steps", "0"}), 2, "steps");
  expect_refused(with({"--text", at("text"), "--learning-rate", "nan"}), 2, "learning-rate");
  expect_refused(with({"--text", at("text"), "--init", at("nowhere")}), 1, "nowhere");
  expect_refused(
      {"train", "lm", "--text", at("text"), "--tokenizer", at("nowhere"), "--out", at("out")}, 1,
      "nowhere");
  expect_refused({"train", "lm", "--text", at("text"), "--tokenizer", at("tokenizer"), "--out",
                  "/proc/nowhere"},
                 1, "/proc/nowhere");
  EXPECT_FALSE(fs::exists(at("out") + "/model.safetensors"));
}

TEST_F(TrainRun, ADistilledDrafterHasItsTargetsVocabulary) {
  TinyShape shape;
  write_hugging_face(make_tiny_model(shape), root_.path() / "target");
  fs::create_directories(root_.path() / "other");
  write("other/tokenizer.json", tokenizer_json(make_tiny_vocabulary(280)));
  const Words words = {"train",       "distill",   "--target", at("target"), "--text",
                       at("text"),    "--layers",  "1",        "--dim",      "32",
                       "--steps",     "4",         "--batch",  "2",          "--length",
                       "16",          "--threads", "1",        "--prompt",   "4",
                       "--on-policy", "0.5",       "--out",    at("drafter")};
  Words wrong = words;
  wrong.insert(wrong.end(), {"--tokenizer", at("other")});
  const ProgramRun refused = run_program(wrong);
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("vocabulary"));
  EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;

  Words over = words;
  over.back() = at("target") + "/.";
  const std::string target_before = read_file(root_.path() / "target" / "model.safetensors");
  const ProgramRun kept = run_program(over);
  EXPECT_EQ(kept.status, 2);
  EXPECT_THAT(kept.err, HasSubstr("another directory than the target's"));
  EXPECT_EQ(std::count(kept.err.begin(), kept.err.end(), '\n'), 1) << kept.err;
  EXPECT_EQ(read_file(root_.path() / "target" / "model.safetensors"), target_before);

  const ProgramRun trained = run_program(words);
  ASSERT_EQ(trained.status, 0) << trained.err;
  const ProgramRun said =
      run_program({"generate", "--model", at("target"), "--draft", at("drafter"), "--prompt", "The",
                   "--max-tokens", "5", "--ignore-eos", "--json"});
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("\"drafted\""));
}

// Modules alone are exported, resumed and used. A run begun with a copy of the target cannot end
// with modules only, nor the reverse.
TEST_F(TrainRun, ModulesAloneDraftForTheirTarget) {
  write_hugging_face(make_tiny_model(TinyShape{}), root_.path() / "target");
  const auto mtp = [&](const std::string& out, const Words& more) {
    Words words = {"train",
                   "mtp",
                   "--target",
                   at("target"),
                   "--text",
                   at("text"),
                   "--steps",
                   "4",
                   "--batch",
                   "2",
                   "--length",
                   "16",
                   "--threads",
                   "1",
                   "--checkpoint-every",
                   "2",
                   "--export-every",
                   "2",
                   "--out",
                   at(out)};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  };
  const ProgramRun begun = mtp("modules", {"--alone"});
  ASSERT_EQ(begun.status, 0) << begun.err;
  EXPECT_TRUE(fs::exists(at("modules") + "/model.safetensors"));
  const ProgramRun again = mtp("modules", {"--alone", "--resume"});
  EXPECT_EQ(again.status, 0) << again.err;
  const auto generate = [&](const Words& more) {
    Words words = {"generate", "--model",      at("target"), "--prompt",
                   "The",      "--max-tokens", "12",         "--ignore-eos"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  };
  const ProgramRun drafted = generate({"--drafter", "mtp:" + at("modules")});
  EXPECT_EQ(drafted.status, 0) << drafted.err;
  EXPECT_EQ(drafted.out, generate({}).out);

  const auto expect_refused = [](const ProgramRun& run, int status, const std::string& what) {
    EXPECT_EQ(run.status, status) << run.err;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_THAT(run.err, HasSubstr(what));
  };
  expect_refused(mtp("modules", {"--resume"}), 2, "a directory that holds no model");
  ASSERT_EQ(mtp("copy", {}).status, 0);
  expect_refused(mtp("copy", {"--alone", "--resume"}), 2, "a directory that holds no model");
  fs::remove(at("copy") + "/model.safetensors.index.json");
  expect_refused(mtp("copy", {"--alone", "--resume"}), 1, "as the run was begun");
  EXPECT_FALSE(fs::exists(at("copy") + "/model.safetensors"));
}

// A file-size limit simulates a full disk.
TEST_F(TrainRun, OutOfRoomItKeepsTheLastCheckpoint) {
  Words first = lm("full", {"--resume"});
  std::replace(first.begin(), first.end(), std::string("60"), std::string("9"));
  // Another number of steps is another schedule, and therefore another run.
  ASSERT_EQ(run_program(first).status, 0);
  EXPECT_THAT(run_program(lm("full", {"--resume"})).err, HasSubstr("steps"));

  const fs::path checkpoint = root_.path() / "short" / "training" / "checkpoint.pt";
  const auto expect_out_of_room = [&] {
    Words shell = {"-c", "ulimit -f 150; exec \"$0\" \"$@\"", OUTRIDER_PROGRAM};
    const Words words = lm("short", {"--resume"});
    shell.insert(shell.end(), words.begin(), words.end());
    ProgramInput input;
    input.program = "/bin/sh";
    const ProgramRun run = run_program(shell, input);
    EXPECT_EQ(run.status, 1);
    // After lines of progress, one line says what happened.
    const std::size_t last = run.err.rfind('\n', run.err.size() - 2) + 1;
    EXPECT_THAT(run.err.substr(last),
                AllOf(StartsWith("outrider-train: "), HasSubstr("File too large")));
    EXPECT_FALSE(fs::exists(checkpoint.string() + ".outrider-partial"));
    EXPECT_FALSE(fs::exists(at("short") + "/model.safetensors"));
  };
  expect_out_of_room();
  EXPECT_FALSE(fs::exists(checkpoint));
  // Stopped when a checkpoint exists, it continues without disk space for another.
  for (int attempt = 0; attempt < 50 && !fs::exists(checkpoint); ++attempt) {
    killed_after(lm("short", {"--resume"}), std::chrono::milliseconds(200 + 50 * attempt));
  }
  const std::string good = read_file(checkpoint);
  ASSERT_FALSE(good.empty());
  if (!fs::exists(at("short") + "/model.safetensors")) expect_out_of_room();
  EXPECT_EQ(read_file(checkpoint), good);
  const ProgramRun rest = run_program(lm("short", {"--resume"}));
  EXPECT_EQ(rest.status, 0) << rest.err;
}

TEST_F(TrainRun, ADivergedRunGoesOnAtALowerRateButNotOnAnotherText) {
  ASSERT_TRUE(killed_when(lm("run", {"--learning-rate", "0.01"}),
                          [&] { return fs::exists(at("run") + "/training/checkpoint.pt"); }));
  const ProgramRun lower = run_program(lm("run", {"--learning-rate", "0.001", "--resume"}));
  EXPECT_EQ(lower.status, 0) << lower.err;
  EXPECT_THAT(lower.err, HasSubstr("--learning-rate 0.001; the run was begun with 0.01"));
  const ProgramRun wild = run_program(lm("wild", {"--learning-rate", "1e38"}));
  EXPECT_EQ(wild.status, 2);
  EXPECT_THAT(wild.err, HasSubstr("up to 10"));

  std::string text = read_file(root_.path() / "text");
  text[text.find("cats")] = 'b';
  write("text", text);
  const ProgramRun changed = run_program(lm("run", {"--learning-rate", "0.001", "--resume"}));
  EXPECT_EQ(changed.status, 1);
  EXPECT_THAT(changed.err, HasSubstr("tokens"));
}

// The fastest precision differs from machine to machine; at least one of the two is not the fastest
// here.
TEST_F(TrainRun, GoesOnInThePrecisionItBeganIn) {
  for (const std::string precision : {"f32", "bf16"}) {
    ASSERT_TRUE(killed_when(lm(precision, {"--precision", precision}),
                            [&] { return fs::exists(at(precision) + "/training/checkpoint.pt"); }));
    const ProgramRun rest = run_program(lm(precision, {"--resume"}));
    EXPECT_EQ(rest.status, 0) << rest.err;
    const std::string settings = read_file(root_.path() / precision / "training/settings.json");
    EXPECT_THAT(settings, HasSubstr("\"precision\": \"" + precision + "\""));
    const std::string other = precision == "f32" ? "bf16" : "f32";
    const ProgramRun refused = run_program(lm(precision, {"--resume", "--precision", other}));
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.err, AllOf(HasSubstr("precision"), HasSubstr(precision)));
  }
}

}  // namespace
}  // namespace outrider::test
