// SPDX-License-Identifier: Apache-2.0
// Generated programs in their isolation. Namespaces are tested if the machine has them.
#include "eval/tasks/python_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "eval/metrics/pass_at.h"
#include "eval/tasks/data_file.h"
#include "eval/tasks/item.h"
#include "eval/tasks/task.h"
#include "outrider/error.h"
#include "tests/support/temporary_directory.h"

namespace outrider::eval {
namespace {

namespace fs = std::filesystem;
using Kind = ProgramOutcome::Kind;
using ::testing::HasSubstr;

class PythonRunnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      runner_ =
          std::make_shared<PythonRunner>(/*allow_network=*/true, PythonLimits{.wall_seconds = 5});
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
  std::shared_ptr<PythonRunner> runner_;
};

TEST_F(PythonRunnerTest, TellsRightProgramsFromWrongOnes) {
  EXPECT_EQ(runner_->run("assert 1 + 1 == 2").kind, Kind::passed);
  const ProgramOutcome wrong = runner_->run("assert 1 + 1 == 3, 'no sum'");
  EXPECT_EQ(wrong.kind, Kind::failed);
  EXPECT_EQ(wrong.detail, "AssertionError: no sum");
  EXPECT_THAT(runner_->run("def f(:\n").detail, HasSubstr("SyntaxError"));
}

TEST_F(PythonRunnerTest, DoesNotTakeAnEarlyEndForSuccess) {
  EXPECT_EQ(runner_->run("import sys\nsys.exit(0)").kind, Kind::failed);
  EXPECT_EQ(runner_->run("import os\nos._exit(0)").kind, Kind::failed);
  EXPECT_THAT(runner_->run("import ctypes\nctypes.string_at(0)").detail,
              ::testing::HasSubstr("signal 11"));
}

TEST_F(PythonRunnerTest, EndsWhatDoesNotEnd) {
  PythonRunner hasty(true, {.wall_seconds = 1});
  EXPECT_EQ(hasty.run("import time\ntime.sleep(1000)").kind, Kind::timed_out);
  EXPECT_EQ(hasty.run("import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\n"
                      "while True: pass")
                    .kind == Kind::passed,
            false);
}

TEST_F(PythonRunnerTest, BoundsMemoryAndFiles) {
  PythonRunner narrow(true, {.memory_bytes = std::int64_t{256} << 20, .file_bytes = 4096});
  EXPECT_EQ(narrow.run("x = bytearray(1 << 30)").detail, "MemoryError");
  EXPECT_EQ(narrow.run("open('f', 'wb').write(b'x' * 4000)").kind, Kind::passed);
  EXPECT_EQ(narrow.run("open('f', 'wb').write(b'x' * 40000)").kind, Kind::failed);
}

TEST_F(PythonRunnerTest, SurvivesFloodsOfOutput) {
  EXPECT_EQ(
      runner_->run("import sys\nfor _ in range(2000): print('x' * 1000, file=sys.stderr)").kind,
      Kind::passed);
  EXPECT_EQ(runner_->run("for _ in range(2000): print('x' * 1000)").kind, Kind::passed);
}

TEST_F(PythonRunnerTest, BoundsProcesses) {
  if (!runner_->isolation().processes && ::geteuid() != 0) {
    GTEST_SKIP() << "the limit would count this user's other processes";
  }
  const ProgramOutcome outcome = runner_->run(
      "import os, time\n"
      "for _ in range(40):\n"
      "  if os.fork() == 0:\n"
      "    time.sleep(1000)\n");
  EXPECT_THAT(outcome.detail, HasSubstr("BlockingIOError"));
}

TEST_F(PythonRunnerTest, LeavesNoProcessAndNoDirectoryBehind) {
  // A daemon in a session of its own is out of reach for a signal to the group; with the
  // namespace it dies all the same. It would write into the file below.
  if (!runner_->isolation().processes) GTEST_SKIP() << "no process namespaces here";
  const auto n_scratch = [] {
    int n = 0;
    for (const auto& entry : fs::directory_iterator(fs::temp_directory_path())) {
      if (entry.path().filename().string().starts_with("outrider-program-")) ++n;
    }
    return n;
  };
  const int before = n_scratch();
  const ProgramOutcome outcome = runner_->run(
      "import os, time\n"
      "if os.fork() == 0:\n"
      "  os.setsid()\n"
      "  os.closerange(0, 10)\n"
      "  time.sleep(1000)\n");
  EXPECT_EQ(outcome.kind, Kind::passed);
  EXPECT_LE(n_scratch(), before);
}

TEST_F(PythonRunnerTest, HasNoNetwork) {
  if (!runner_->isolation().network) GTEST_SKIP() << "no network namespaces here";
  EXPECT_EQ(runner_
                ->run("import socket\n"
                      "names = [name for _, name in socket.if_nameindex()]\n"
                      "assert set(names) <= {'lo'} or "
                      "all(n.startswith(('lo', 'tunl', 'sit', 'ip', 'gre', 'erspan')) for n in "
                      "names), names\n"
                      "s = socket.socket()\n"
                      "try:\n  s.connect(('127.0.0.1', 9))\n"
                      "except ConnectionRefusedError:\n  raise SystemExit('loopback is up')\n"
                      "except OSError:\n  pass\n")
                .detail,
            "");
}

TEST_F(PythonRunnerTest, WritesInItsOwnDirectoryAlone) {
  const test::TemporaryDirectory directory;
  fs::permissions(directory.path(), fs::perms::all);
  const std::string file = (directory.path() / "trace").string();
  EXPECT_EQ(runner_->run("open('here', 'w').write('x')").kind, Kind::passed);
  if (!runner_->isolation().files) GTEST_SKIP() << "no mount namespaces here";
  EXPECT_THAT(runner_->run("open('" + file + "', 'w').write('x')").detail, HasSubstr("Read-only"));
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(PythonRunnerTest, KeepsNoDescriptorOpen) {
  const std::ifstream open_file("/proc/self/status");
  EXPECT_EQ(runner_
                ->run("import os\n"
                      "assert sorted(int(f) for f in os.listdir('/proc/self/fd'))[:4] == [0, 1, 2, "
                      "3]\n"
                      "for f in range(4, 256):\n"
                      "  try: os.fstat(f)\n"
                      "  except OSError: continue\n"
                      "  raise SystemExit('open: %d' % f)\n")
                .detail,
            "");
}

TEST_F(PythonRunnerTest, PassAtCountsWhatPasses) {
  const Item item{.number = 0,
                  .place = "here",
                  .fields = {{"prompt", "def double(x):\n"}, {"test", "assert double(2) == 4"}}};
  const PassAt metric(1, Template::parse("{prompt}{completion}\n{test}\n", "task"), runner_);
  const std::vector<std::string> texts = {"    return 2 * x\n", "    return x\n",
                                          "```python\n    return x + x\n```", "    return (\n"};
  EXPECT_EQ(metric.count({.item = item, .texts = texts, .references = {}}),
            (std::vector<double>{0.5, 1}));
  const PassAt two(2, Template::parse("{completion}", "task"), runner_);
  const std::vector<std::string> one = {"x"};
  EXPECT_THROW(two.count({.item = item, .texts = one, .references = {}}), Error);
}

// MBPP's solutions pass its own tests, isolated and with the task's template; with another item's
// solution none passes.
TEST_F(PythonRunnerTest, RealSolutionsPassTheirTests) {
  const fs::path data = fs::path(OUTRIDER_SHARED_DATA) / "eval" / "mbpp" / "mbpp.jsonl";
  if (!fs::exists(data)) GTEST_SKIP() << "no " << data;
  const Task task = load_task(OUTRIDER_SOURCE_DIR "/tasks/mbpp.json", {});
  const DataSet set = read_data(task.data, {data.string()});
  const PassAt metric(1, task.program, runner_);
  ASSERT_GE(set.items.size(), 31U);
  for (std::size_t i = 10; i < 30; ++i) {
    for (const std::size_t solution : {i, i + 1}) {
      const std::vector<std::string> texts = {set.items[solution].fields["code"]};
      EXPECT_EQ(metric.count({.item = set.items[i], .texts = texts, .references = {}})[0],
                solution == i ? 1 : 0)
          << set.items[i].place;
    }
  }
}

TEST_F(PythonRunnerTest, RealSolutionsOfHumanEvalPass) {
  const fs::path data =
      fs::path(OUTRIDER_SHARED_DATA) / "eval" / "humaneval" / "HumanEval.jsonl.gz";
  if (!fs::exists(data)) GTEST_SKIP() << "no " << data;
  const test::TemporaryDirectory directory;
  const std::string unpacked = (directory.path() / "items").string();
  ASSERT_EQ(std::system(("gzip -dc '" + data.string() + "' > '" + unpacked + "'").c_str()), 0);
  const Task task = load_task(OUTRIDER_SOURCE_DIR "/tasks/humaneval.json", {});
  const DataSet set = read_data(task.data, {unpacked});
  const PassAt metric(1, task.program, runner_);
  ASSERT_EQ(set.items.size(), 164U);
  for (std::size_t i = 0; i < 164; i += 8) {
    const std::string solution = set.items[i].fields["canonical_solution"];
    for (const bool right : {true, false}) {
      const std::vector<std::string> texts = {right ? solution : "    return 'no'\n"};
      EXPECT_EQ(metric.count({.item = set.items[i], .texts = texts, .references = {}})[0],
                right ? 1 : 0)
          << set.items[i].place;
    }
  }
}

}  // namespace
}  // namespace outrider::eval
