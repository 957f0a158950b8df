// SPDX-License-Identifier: Apache-2.0
// Two processes on one device, one of which is killed: the other completes its text, nothing is
// left over, and the next process can use the device as usual.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "outrider/devices.h"
#include "tests/support/models/tiny_pair.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;

std::string test_device() {
  if (const char* const named = std::getenv("OUTRIDER_TEST_VULKAN")) {
    return std::string("vulkan:") + named;
  }
  for (const DeviceSummary& device : list_devices().devices) {
    if (device.is_software && device.refused.empty()) return device.name;
  }
  return "";
}

std::string quoted(const std::string& word) { return "'" + word + "'"; }

TEST(DeviceProcesses, OneThatIsKilledLeavesTheOtherItsDevice) {
  const std::string device = test_device();
  if (device.empty()) GTEST_SKIP() << "no Vulkan driver that computes on the processor";
  const TemporaryDirectory directory;
  const std::filesystem::path& root = directory.path();
  write_tiny_pair(root);
  std::filesystem::create_directory(root / "temporary");
  const std::string generate = quoted(OUTRIDER_PROGRAM) + " generate --model " +
                               quoted((root / "target").string()) +
                               " --prompt 'Some text' --threads 1 --ignore-eos --profile none "
                               "--weights int8 ";
  const std::string on_device = "--device " + device + " ";
  // The first one is killed in the middle of its text, while the second one runs.
  const std::string script =
      "cd " + quoted(root.string()) + "; export TMPDIR=$PWD/temporary; " + generate + on_device +
      "--max-tokens 100000 >killed 2>/dev/null & first=$!; " +
      "while kill -0 $first && ! test -s killed; do sleep 0.05; done; " + generate + on_device +
      "--max-tokens 20 >whole & second=$!; sleep 0.3; kill -9 $first; wait $first; "
      "test $? = 137 || exit 3; wait $second";
  const ProgramRun both = run_program({"-c", script}, {.program = "/bin/sh"});
  EXPECT_EQ(both.status, 0) << both.err;
  const auto bytes_of = [](const std::string& command) {
    const ProgramRun run = run_program({"-c", command}, {.program = "/bin/sh"});
    EXPECT_EQ(run.status, 0) << run.err;
    return run.out;
  };
  const std::string expected = bytes_of(generate + "--max-tokens 20");
  EXPECT_THAT(expected, Not(IsEmpty()));
  EXPECT_EQ(bytes_of("cat " + quoted((root / "whole").string())), expected);
  EXPECT_EQ(bytes_of(generate + on_device + "--max-tokens 20"), expected);
  EXPECT_TRUE(std::filesystem::is_empty(root / "temporary"));
}

}  // namespace
}  // namespace outrider::test
