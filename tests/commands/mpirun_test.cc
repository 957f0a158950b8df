// SPDX-License-Identifier: Apache-2.0
// The program under the real mpirun, on this machine. Skipped if Open MPI or the module is missing.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "tests/support/http_client.h"
#include "tests/support/models/cli_models.h"
#include "tests/support/run_program.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using test::CliModels;
using test::ProgramRun;
using test::Words;
using ::testing::HasSubstr;

// Empty if nothing is missing.
std::string what_is_missing() {
  if (test::installed_program("mpirun").empty()) return "no mpirun (scripts/install-deps mpi)";
  const fs::path module = fs::path(OUTRIDER_PROGRAM).parent_path() / "outrider_mpi.so";
  if (!fs::exists(module)) return "built without MPI (scripts/install-deps mpi, then configure)";
  return {};
}

// The arguments of mpirun: more ranks than cores, as any user, over TCP on the loopback only.
Words launched(int n_ranks, const Words& words) {
  Words all = {"--allow-run-as-root",
               "--oversubscribe",
               "--bind-to",
               "none",
               "--mca",
               "btl",
               "tcp,self",
               "--mca",
               "btl_tcp_if_include",
               "lo",
               "-n",
               std::to_string(n_ranks),
               OUTRIDER_PROGRAM};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

// The same for two ranks, each with a program and arguments of its own, the program first.
ProgramRun run_each(const Words& first, const Words& second) {
  Words all = launched(1, {});
  all.pop_back();
  all.insert(all.end(), first.begin(), first.end());
  all.insert(all.end(), {":", "-n", "1"});
  all.insert(all.end(), second.begin(), second.end());
  return test::run_program(all, {.program = test::installed_program("mpirun")});
}

ProgramRun run_on(int n_ranks, const Words& words) {
  return test::run_program(launched(n_ranks, words),
                           {.program = test::installed_program("mpirun")});
}

class Mpirun : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string missing = what_is_missing();
    if (!missing.empty()) GTEST_SKIP() << missing;
  }
  static Words generate(const Words& further) {
    Words words = {"generate", "--model",   CliModels::get().target(),
                   "--prompt", "A test.",   "--max-tokens",
                   "24",       "--threads", "1",
                   "--json"};
    words.insert(words.end(), further.begin(), further.end());
    return words;
  }
  static nlohmann::json ids_of(const ProgramRun& run) {
    EXPECT_EQ(run.status, 0) << run.err;
    const auto object = nlohmann::json::parse(run.out, nullptr, /*allow_exceptions=*/false);
    EXPECT_FALSE(object.is_discarded()) << run.out;
    return object.is_object() ? object.value("ids", nlohmann::json()) : nlohmann::json();
  }
};

TEST_F(Mpirun, IdsAreThoseOfOneProcess) {
  for (const char* weights : {"f32", "int8"}) {
    for (const Words& drafts :
         {Words{}, Words{"--draft", CliModels::get().draft(), "--tree", "chain:length=4"}}) {
      Words further = {"--weights", weights};
      further.insert(further.end(), drafts.begin(), drafts.end());
      const nlohmann::json expected = ids_of(test::run_program(generate(further)));
      EXPECT_EQ(expected.size(), 24U);
      for (const int n_ranks : {2, 4}) {
        EXPECT_EQ(ids_of(run_on(n_ranks, generate(further))), expected) << n_ranks << " ranks";
      }
    }
  }
}

TEST_F(Mpirun, LogitsAreThoseOfOneProcess) {
  const auto bytes_of = [](const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  const fs::path one = CliModels::get().root() / "one.npy";
  const fs::path three = CliModels::get().root() / "three.npy";
  ids_of(test::run_program(generate({"--logits", one.string()})));
  ids_of(run_on(3, generate({"--logits", three.string()})));
  EXPECT_FALSE(bytes_of(one).empty());
  EXPECT_EQ(bytes_of(one), bytes_of(three));
}

TEST_F(Mpirun, OneRankIsAProcessByItself) {
  EXPECT_EQ(ids_of(run_on(1, generate({}))), ids_of(test::run_program(generate({}))));
}

TEST_F(Mpirun, BenchMeasuresAndNamesTheRanks) {
  const Words words = {"bench",     "--passes", "--model",  CliModels::get().target(),
                       "--rows",    "1,4",      "--repeat", "1",
                       "--threads", "1"};
  Words as_json = words;
  as_json.emplace_back("--json");
  const ProgramRun run = run_on(2, as_json);
  EXPECT_EQ(run.status, 0) << run.err;
  const auto object = nlohmann::json::parse(run.out, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(object.is_object()) << run.out;
  EXPECT_EQ(object.value("ranks", 0), 2);
  EXPECT_EQ(object.value("rank_threads", nlohmann::json()), nlohmann::json({1, 1}));
  EXPECT_THAT(run_on(2, words).out, HasSubstr("2 ranks of 1 and 1 threads"));
}

int n_lines_of_ours(const ProgramRun& run) {
  int n = 0;
  for (std::size_t at = run.err.find("outrider: "); at != std::string::npos;
       at = run.err.find("outrider: ", at + 1)) {
    n += at == 0 || run.err[at - 1] == '\n' ? 1 : 0;
  }
  return n;
}

// One line, from rank 0 only, beside mpirun's own message about a status other than 0.
void expect_one_line(const ProgramRun& run, const std::string& words) {
  EXPECT_NE(run.status, 0);
  EXPECT_EQ(n_lines_of_ours(run), 1) << run.err;
  EXPECT_THAT(run.err, HasSubstr(words));
}

TEST_F(Mpirun, WhatIsNotForRanksIsRefusedInOneLine) {
  expect_one_line(run_on(2, {"train", "lm", "--help"}), "outrider train: expected one process");
  expect_one_line(run_on(2, {"tokenize", "--model", CliModels::get().target(), "--text", "a"}),
                  "outrider tokenize: expected one process");
  expect_one_line(run_on(2, {"bench", "--plan", "--model-shape", "llama-70b", "--device", "h200"}),
                  "--plan: expected one process");
  expect_one_line(run_on(2, {"serve", "--models", CliModels::get().root().string()}),
                  "--models: expected one --model");
  expect_one_line(run_on(2, {"serve", "--model", CliModels::get().target(), "--slot-save-path",
                             CliModels::get().root().string()}),
                  "--slot-save-path: expected none");
  expect_one_line(run_on(2, generate({"--no-such-flag"})), "--no-such-flag");
}

TEST_F(Mpirun, ErrorsComeInOneLineFromRankZero) {
  expect_one_line(run_on(2, {"generate", "--model", "/nowhere/at/all", "--prompt", "a"}),
                  "/nowhere/at/all");
  expect_one_line(run_on(3, generate({"--drafter", "model:/nowhere/at/all"})), "/nowhere/at/all");
  // The tiny pair has four heads.
  expect_one_line(run_on(5, generate({})), "expected at most 4 ranks");
}

// Arguments of rank 0, arguments of rank 1.
ProgramRun run_apart(const Words& first, const Words& second) {
  Words words = launched(1, first);
  words.insert(words.end(), {":", "-n", "1", OUTRIDER_PROGRAM});
  words.insert(words.end(), second.begin(), second.end());
  return test::run_program(words, {.program = test::installed_program("mpirun")});
}

// Rank 0 alone could not detect it, and would wait for rank 1 forever.
TEST_F(Mpirun, WhatOneRankRefusesItSaysAndAllEnd) {
  expect_one_line(run_apart(generate({}), generate({"--no-such-flag"})), "outrider: rank 1: ");
  expect_one_line(run_apart(generate({}), {"tokenize", "--model", "m", "--text", "a"}),
                  "outrider: rank 1: ");
}

int n_times(const std::string& text, const std::string& part) {
  int n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// No rank succeeds without having done anything.
TEST_F(Mpirun, HelpAndVersionComeFromEveryRank) {
  const ProgramRun version = run_on(2, {"--version"});
  EXPECT_EQ(version.status, 0) << version.err;
  EXPECT_EQ(n_times(version.out, "outrider "), 2) << version.out;
  const ProgramRun help = run_on(2, {"generate", "--help"});
  EXPECT_EQ(help.status, 0) << help.err;
  EXPECT_EQ(n_times(help.out, "--max-tokens"),
            2 * n_times(test::run_program({"generate", "--help"}).out, "--max-tokens"));
}

// Only a rank started alone, without a first one, can show this: mpirun would end the run before
// the message.
TEST(ALaterRank, RefusesWhatIsNotForRanksWithItsNumber) {
  const ProgramRun run = test::run_program(
      {"-c", "OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_RANK=2 " OUTRIDER_PROGRAM " rules"},
      {.program = "/bin/sh"});
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err,
              HasSubstr("outrider: rank 2: [start ranks] outrider rules: expected one process"));
}

// Ranks with different time-outs would lose one another.
TEST_F(Mpirun, AnotherTimeoutIsRefused) {
  expect_one_line(run_apart(generate({"--rank-timeout", "30"}), generate({})),
                  "rank time-out: expected 30 s on every rank, as on rank 0, got 60 s on rank 1");
}

// Errors after which one rank alone cannot continue.
TEST_F(Mpirun, AnotherRanksErrorIsSaidByRankZero) {
  const auto program = [](const Words& words) {
    Words all = {OUTRIDER_PROGRAM};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  };
  const Words lost = {"generate", "--model", "/nowhere/at/all", "--prompt", "a"};
  expect_one_line(run_each(program(generate({})), program(lost)),
                  "rank 1 of 2: gave up: [load model] /nowhere/at/all");
}

// Identical bits need one build: a program with one more byte at its end counts as another build.
TEST_F(Mpirun, AnotherBuildIsRefused) {
  const fs::path folder = CliModels::get().root() / "another_build";
  fs::create_directories(folder);
  const fs::path program = folder / "outrider";
  fs::copy_file(OUTRIDER_PROGRAM, program, fs::copy_options::overwrite_existing);
  std::ofstream(program, std::ios::binary | std::ios::app) << 'x';
  const fs::path module = fs::path(OUTRIDER_PROGRAM).parent_path() / "outrider_mpi.so";
  std::error_code ignored;
  fs::create_symlink(module, folder / "outrider_mpi.so", ignored);
  Words first = generate({});
  Words second = first;
  first.insert(first.begin(), OUTRIDER_PROGRAM);
  second.insert(second.begin(), program.string());
  expect_one_line(run_each(first, second), "build (the program's checksum): expected ");
}

// Under the launcher of another MPI, each process would run alone, and each would print everything.
TEST_F(Mpirun, RanksThatMpiDoesNotKnowAreRefused) {
  ASSERT_EQ(::setenv("PMI_SIZE", "2", 1), 0);
  ASSERT_EQ(::setenv("PMI_RANK", "0", 1), 0);
  const ProgramRun run = test::run_program(generate({}));
  ::unsetenv("PMI_SIZE");
  ::unsetenv("PMI_RANK");
  expect_one_line(run, "PMI: expected 2 ranks, as it says, in MPI, too, got 1");
}

// Whether the server has a text: from when it has taken a request until it has answered.
bool has_text(int port) {
  std::istringstream metrics(test::HttpClient(port).get("/metrics").body);
  std::string line;
  while (std::getline(metrics, line)) {
    const bool is_count =
        line.starts_with("outrider_texts_running{") || line.starts_with("outrider_texts_waiting{");
    if (is_count && line.ends_with(" 1")) return true;
  }
  return false;
}

// A server under mpirun, in the background.
class LaunchedServer {
 public:
  explicit LaunchedServer(const Words& words, int n_ranks = 2, const std::string& name = "server") {
    const std::string mpirun = test::installed_program("mpirun");
    Words all = {mpirun};
    for (const std::string& word : launched(n_ranks, words)) all.push_back(word);
    std::vector<char*> pointers;
    for (std::string& word : all) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    log_ = (CliModels::get().root() / (name + ".log")).string();
    fs::remove(log_);  // the log has an earlier server's port until the child has created it anew
    process_ = ::fork();
    if (process_ < 0) throw std::runtime_error("fork failed");
    if (process_ == 0) {
      const int log = ::creat(log_.c_str(), 0600);
      ::dup2(log, STDOUT_FILENO);
      ::dup2(log, STDERR_FILENO);
      ::execv(pointers[0], pointers.data());
      ::_exit(127);
    }
  }
  ~LaunchedServer() {
    if (follower_) ::kill(*follower_, SIGKILL);
    if (process_ < 0) return;
    ::kill(process_, SIGTERM);
    int status = 0;
    for (int i = 0; i < 400; ++i) {
      if (::waitpid(process_, &status, WNOHANG) == process_) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
    }
    ::kill(process_, SIGKILL);
    ::waitpid(process_, &status, 0);
  }
  LaunchedServer(const LaunchedServer&) = delete;
  LaunchedServer& operator=(const LaunchedServer&) = delete;

  std::string log() const {
    std::ifstream stream(log_);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }
  // The port that the log reports; 0 if none appears.
  int port() const {
    constexpr std::string_view kBefore = " at http://127.0.0.1:";
    for (int i = 0; i < 1200; ++i) {
      const std::string text = log();
      const std::size_t at = text.find(kBefore);
      if (at != std::string::npos && text.find(' ', at + kBefore.size()) != std::string::npos) {
        return std::atoi(text.c_str() + at + kBefore.size());
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return 0;
  }
  // Stops a rank, as if its machine hung.
  bool stop_follower(int rank = 1) {
    follower_ = process_of_rank(rank);
    return follower_ && ::kill(*follower_, SIGSTOP) == 0;
  }
  // Signals the process of one rank, not mpirun.
  bool signal_rank(int rank, int signal) const {
    const std::optional<pid_t> process = process_of_rank(rank);
    return process && ::kill(*process, signal) == 0;
  }
  // Whether rank 0 already handles SIGINT: it does from the beginning of its load.
  bool handles_signals() const {
    for (int i = 0; i < 1200; ++i) {
      const std::optional<pid_t> process = process_of_rank(0);
      if (process && catches_int(*process)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  // The exit status of mpirun, which is that of the ranks; nothing if it does not end.
  std::optional<int> wait() {
    int status = 0;
    for (int i = 0; i < 2400; ++i) {
      if (::waitpid(process_, &status, WNOHANG) == process_) {
        process_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
    }
    return std::nullopt;
  }

 private:
  std::optional<pid_t> process_of_rank(int rank) const {
    std::string variable = "OMPI_COMM_WORLD_RANK=" + std::to_string(rank);
    variable.insert(variable.begin(), '\0');
    variable.push_back('\0');
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string name = entry.path().filename().string();
      if (std::isdigit(static_cast<unsigned char>(name.front())) == 0) continue;
      const pid_t process = std::atoi(name.c_str());
      if (parent_of(process) != process_) continue;
      std::ifstream stream(entry.path() / "environ", std::ios::binary);
      const std::string environment(std::istreambuf_iterator<char>(stream), {});
      if (environment.find(variable) != std::string::npos) return process;
    }
    return std::nullopt;
  }
  static bool catches_int(pid_t process) {
    std::ifstream stream("/proc/" + std::to_string(process) + "/status");
    std::string line;
    while (std::getline(stream, line)) {
      if (!line.starts_with("SigCgt:")) continue;
      return (std::stoull(line.substr(7), nullptr, 16) & (1ULL << (SIGINT - 1))) != 0;
    }
    return false;
  }
  static pid_t parent_of(pid_t process) {
    std::ifstream stream("/proc/" + std::to_string(process) + "/status");
    std::string line;
    while (std::getline(stream, line)) {
      if (line.starts_with("PPid:")) return std::atoi(line.c_str() + 5);
    }
    return -1;
  }

  pid_t process_ = -1;
  std::string log_;
  std::optional<pid_t> follower_;
};

TEST_F(Mpirun, AServerAnswersAndSaysWhenARankIsLost) {
  LaunchedServer server({"serve", "--model", CliModels::get().target(), "--threads", "1", "--port",
                         "0", "--rank-timeout", "2"});
  const int port = server.port();
  ASSERT_GT(port, 0) << server.log();
  const auto ask = [&] {
    return test::HttpClient(port).post("/v1/completions", R"({"prompt": "a", "max_tokens": 4})",
                                       {{"Content-Type", "application/json"}});
  };
  EXPECT_EQ(ask().status, 200);
  EXPECT_EQ(test::HttpClient(port).get("/health").status, 200);
  ASSERT_TRUE(server.stop_follower()) << server.log();
  const test::HttpAnswer answer = ask();
  EXPECT_EQ(answer.status, 503) << answer.body;
  EXPECT_THAT(answer.body, HasSubstr("rank 1 of 2: nothing came from it for 2 s"));
  EXPECT_EQ(ask().status, 503);
  EXPECT_EQ(test::HttpClient(port).get("/health").status, 503);
}

// Rank 1 learns that rank 2 is lost. If it ended then, mpirun would end the server.
TEST_F(Mpirun, AServerGoesOnAnsweringWhenARankIsLost) {
  LaunchedServer server({"serve", "--model", CliModels::get().target(), "--threads", "1", "--port",
                         "0", "--rank-timeout", "1"},
                        3);
  const int port = server.port();
  ASSERT_GT(port, 0) << server.log();
  const auto health = [&] { return test::HttpClient(port).get("/health"); };
  ASSERT_TRUE(server.stop_follower(2)) << server.log();
  int status = 200;
  for (int i = 0; i < 600 && status == 200; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    status = health().status;
  }
  EXPECT_EQ(status, 503);
  // Longer than any rank waits (2.5 s), and longer than a rank needs to end.
  std::this_thread::sleep_for(std::chrono::seconds(6));
  const test::HttpAnswer answer = health();
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.body, HasSubstr("rank 2 of 3: nothing came from it for 1 s"));
  ASSERT_TRUE(server.signal_rank(0, SIGTERM));
  EXPECT_NE(server.wait().value_or(0), 0) << server.log();
}

// Rank 1 is stopped early, while it loads or in a pass, so that it hangs. The time-out is ten
// minutes, and loading has an hour.
TEST_F(Mpirun, CtrlCEndsTheWaitForARankThatHangs) {
  Words words = generate({"--rank-timeout", "600", "--ignore-eos"});
  *std::find(words.begin(), words.end(), "24") = "100000000";
  // Its context does not end the text before.
  *std::find(words.begin(), words.end(), CliModels::get().target()) = CliModels::get().patient();
  LaunchedServer run(words, 2, "interrupted");
  ASSERT_TRUE(run.handles_signals()) << run.log();
  ASSERT_TRUE(run.stop_follower()) << run.log();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  ASSERT_TRUE(run.signal_rank(0, SIGINT));
  const std::optional<int> status = run.wait();  // a minute at most
  ASSERT_TRUE(status) << run.log();
  EXPECT_NE(*status, 0);
  EXPECT_THAT(run.log(), HasSubstr("interrupted while it waited for rank 1"));
}

// The same for a server with a request, which is answered.
TEST_F(Mpirun, SigtermEndsTheWaitOfAServerForARankThatHangs) {
  LaunchedServer server({"serve", "--model", CliModels::get().target(), "--threads", "1", "--port",
                         "0", "--rank-timeout", "600", "--profile", "none"});
  const int port = server.port();
  ASSERT_GT(port, 0) << server.log();
  ASSERT_TRUE(server.stop_follower()) << server.log();
  test::HttpClient client(port);
  const nlohmann::json body = {{"prompt", "a"}, {"max_tokens", 4}};
  ASSERT_TRUE(client.send(test::request_text("POST", "/v1/completions", body.dump(),
                                             {{"Content-Type", "application/json"}})));
  // Behind SIGTERM no request is taken.
  for (int i = 0; i < 1200 && !has_text(port); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
  }
  ASSERT_TRUE(has_text(port)) << server.log();
  ASSERT_TRUE(server.signal_rank(0, SIGTERM));
  EXPECT_EQ(client.receive_head().status, 503);
  ASSERT_TRUE(server.wait()) << server.log();
  EXPECT_THAT(server.log(), HasSubstr("interrupted while it waited for rank 1"));
}

// As from a service manager that signals every process. The stream continues to its end.
TEST_F(Mpirun, SigtermToAllRanksLetsTextsEnd) {
  LaunchedServer server({"serve", "--model", CliModels::get().patient(), "--threads", "1", "--port",
                         "0", "--profile", "none"});
  const int port = server.port();
  ASSERT_GT(port, 0) << server.log();
  test::HttpClient client(port);
  constexpr int kTokens = 2000;
  const nlohmann::json body = {{"prompt", "a"},
                               {"max_tokens", kTokens},
                               {"temperature", 0},
                               {"ignore_eos", true},
                               {"stream", true}};
  ASSERT_TRUE(client.send(test::request_text("POST", "/v1/completions", body.dump(),
                                             {{"Content-Type", "application/json"}})));
  ASSERT_EQ(client.receive_head().status, 200);
  ASSERT_TRUE(client.next_event());
  ASSERT_TRUE(server.signal_rank(1, SIGTERM));
  ASSERT_TRUE(server.signal_rank(0, SIGTERM));
  std::string last;
  std::string finish;
  while (const auto event = client.next_event()) {
    last = *event;
    if (last.find("\"length\"") != std::string::npos) finish = last;
  }
  EXPECT_THAT(last, HasSubstr("[DONE]"));
  EXPECT_THAT(finish, HasSubstr("\"length\"")) << "it did not come to its " << kTokens << " tokens";
  EXPECT_EQ(server.wait(), 0) << server.log();
}

}  // namespace
}  // namespace outrider
