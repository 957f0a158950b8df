// SPDX-License-Identifier: Apache-2.0
// `outrider quantize` as its users see it: its output and refusals. A run that ends early, however
// it ends, leaves the earlier file or none.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "io/test_files.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

std::string read_file(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class QuantizeCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    TinyShape shape;
    shape.dim = 256;
    shape.n_heads = 8;
    shape.head_dim = 32;
    write_gguf(make_tiny_model(shape), model());
  }
  const fs::path& root() const { return directory_.path(); }
  fs::path model() const { return root() / "model.gguf"; }
  fs::path out() const { return root() / "out.gguf"; }
  fs::path partial() const { return out().string() + ".outrider-partial"; }
  Words words(const Words& more = {}) const {
    Words all = {"quantize", model().string(), out().string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  void expect_refused(const Words& words, int status, const std::string& message) const {
    const ProgramRun run = run_program(words);
    EXPECT_EQ(run.status, status) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_THAT(run.err, AllOf(StartsWith("outrider: "), HasSubstr(message)));
    EXPECT_FALSE(fs::exists(partial()));
  }
  // Starts a run and sends it a signal once it has written something; returns the wait status.
  int kill_run(int number) const;

  TemporaryDirectory directory_;
};

TEST_F(QuantizeCommand, WritesAndSaysWhat) {
  const ProgramRun run = run_program(words({"--type", "q8_0"}));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(run.out, AllOf(StartsWith(out().string() + ": q8_0, "), HasSubstr(" bits a weight\n"),
                             HasSubstr("\n  q8_0 "), HasSubstr("\n  f32 ")));
  const auto shown = nlohmann::json::parse(run_program({"inspect", out().string(), "--json"}).out);
  EXPECT_EQ(shown.at("metadata").at("general.file_type"), "7");
  const ProgramRun text = run_program(
      {"generate", "--model", out().string(), "--prompt", "a", "--max-tokens", "4", "--json"});
  EXPECT_EQ(text.status, 0) << text.err;

  // The same by flags, with another type; rows of 96 are reported.
  const ProgramRun again = run_program({"quantize", "--out", out().string(), "--model",
                                        model().string(), "--force", "--threads", "1"});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr(": q4_k_m, "));
  EXPECT_THAT(again.err, AllOf(StartsWith("outrider: warning: in another type"),
                               HasSubstr(": 2 of 16 matrices")));
}

TEST_F(QuantizeCommand, RefusesInOneLine) {
  expect_refused({"quantize"}, 2, "MODEL: expected a .gguf file, got none");
  expect_refused({"quantize", model().string()}, 2, "OUT: expected a place for a file, got none");
  expect_refused({"quantize", "", out().string()}, 2, "--model: expected a path, got an empty");
  expect_refused(words({"--type", "q3_k"}), 2, "--type: expected one of q8_0, q6_k, q4_k_m, q4_0");
  expect_refused(words({"more"}), 2, "more");
  expect_refused({"quantize", root().string(), out().string()}, 1, "got a directory");
  expect_refused({"quantize", (root() / "none").string(), out().string()}, 1, "none");
  expect_refused({"quantize", model().string(), model().string(), "--force"}, 1,
                 "another file than those that are read");
  EXPECT_FALSE(fs::exists(out()));
  EXPECT_EQ(run_program(words({"--type", "q8_0"})).status, 0);
  const std::string before = read_file(out());
  expect_refused(words(), 1, "expected a place where no file is (or --force), got one");
  expect_refused({"quantize", out().string(), (root() / "third.gguf").string()}, 1,
                 "(or --requantize, which adds to the errors that the weights have already), got "
                 "q8_0");
  EXPECT_EQ(read_file(out()), before);
  const ProgramRun third =
      run_program({"quantize", out().string(), (root() / "third.gguf").string(), "--requantize"});
  EXPECT_EQ(third.status, 0);
  EXPECT_THAT(third.err, HasSubstr("warning: quantised before: "));
}

// A file-size limit simulates a full disk.
TEST_F(QuantizeCommand, SaysThatThereIsNoRoom) {
  const ProgramRun run = run_program({"-c", "ulimit -f 64; exec \"$0\" \"$@\"", OUTRIDER_PROGRAM,
                                      "quantize", model().string(), out().string()},
                                     {.program = "/bin/sh"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, AllOf(StartsWith("outrider: [write file] "), HasSubstr("File too large")));
  EXPECT_FALSE(fs::exists(out()));
  EXPECT_FALSE(fs::exists(partial()));
}

int QuantizeCommand::kill_run(int number) const {
  const Words all = words({"--threads", "1", "--force"});
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGINT, SIG_DFL);
    const int nothing = ::open("/dev/null", O_RDWR);
    for (const int descriptor : {0, 1, 2}) ::dup2(nothing, descriptor);
    std::vector<char*> arguments = {const_cast<char*>("outrider")};
    arguments.reserve(all.size() + 2);
    for (const std::string& word : all) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execv(OUTRIDER_PROGRAM, arguments.data());
    ::_exit(127);
  }
  int status = 0;
  for (;;) {
    std::error_code absent;
    const auto size = fs::file_size(partial(), absent);
    if (!absent && size > 500000) break;
    if (::waitpid(child, &status, WNOHANG) == child) return status;  // ended before it was killed
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ::kill(child, number);
  ::waitpid(child, &status, 0);
  return status;
}

TEST_F(QuantizeCommand, EndedInMidWorkItLeavesTheOldFileOrNone) {
  // A second of work or more, in sixteen pieces; the run is ended after the first.
  std::mt19937 generator(1);
  std::vector<float> values(1 << 24);
  for (float& value : values) value = static_cast<float>(generator() % 2001) - 1000;
  test::Bytes bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  test::Gguf made;
  made.text("general.architecture", "llama").tensor("a.weight", {4096, 4096}, 0, bytes);
  const test::Bytes file = made.bytes();
  std::ofstream(model(), std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()), std::ssize(file));
  for (const bool had_one : {false, true}) {
    const std::string before = had_one ? "something else" : "";
    if (had_one) std::ofstream(out()) << before;
    int status = kill_run(SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    EXPECT_EQ(fs::exists(out()), had_one);
    EXPECT_EQ(read_file(out()), before);

    // Ctrl-C removes the partial file, too.
    fs::remove(partial());
    status = kill_run(SIGINT);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 130) << status;
    EXPECT_EQ(fs::exists(out()), had_one);
    EXPECT_EQ(read_file(out()), before);
    EXPECT_FALSE(fs::exists(partial()));
  }
  // The remains of a killed run do not disturb the next.
  kill_run(SIGKILL);
  EXPECT_EQ(run_program(words({"--type", "q8_0", "--force"})).status, 0);
  EXPECT_FALSE(fs::exists(partial()));
}

}  // namespace
}  // namespace outrider::test
