// SPDX-License-Identifier: Apache-2.0
// Two processes on one device, one of which is killed: the other completes its text, nothing is
// left over, and the next process can use the device as usual.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/models/tiny_model.h"
#include "tests/support/run_program.h"
#include "tests/support/software_device.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
namespace {

using ::testing::Ge;
using ::testing::SizeIs;

std::string quoted(const std::string& word) { return "'" + word + "'"; }

// A process that has written some of its text, and goes on, is in the middle of it. Neither text
// ends by itself: the first process is killed, the second one is told to end once it has written
// more.
constexpr const char* kScript = R"(
fail() { kill -9 $first $second; exit $1; }
wait_for_bytes() {  # process, file, number
  until test $(wc -c <$2) -ge $3; do
    kill -0 $1 || fail 3
    sleep 0.01
  done
}
: >killed
: >other
generate --max-tokens 1000000 >killed & first=$!
generate --max-tokens 1000000 >other & second=$!
wait_for_bytes $first killed 1
wait_for_bytes $second other 1
kill -9 $first
wait $first
test $? = 137 || fail 4
wait_for_bytes $second other $(($(wc -c <other) + 40))
cp other whole
kill -TERM $second
wait $second
test $? = 143 || exit 5
)";

TEST(DeviceProcesses, OneThatIsKilledLeavesTheOtherItsDevice) {
  const std::string device = software_device();
  if (device.empty()) GTEST_SKIP() << kNoSoftwareDevice;
  const TemporaryDirectory directory;
  const std::filesystem::path root = directory.path();
  TinyShape shape;
  shape.context_length = 1 << 20;
  write_hugging_face(make_tiny_model(shape), root / "model");
  std::filesystem::create_directory(root / "temporary");
  const std::string generate = quoted(OUTRIDER_PROGRAM) + " generate --model " +
                               quoted((root / "model").string()) +
                               " --prompt 'Some text' --threads 1 --ignore-eos --profile none "
                               "--weights int8 ";
  const std::string on_device = generate + "--device " + device + " ";
  const auto run = [](const std::string& script) {
    return run_program({"-c", script}, {.program = "/bin/sh"});
  };
  const ProgramRun both =
      run("cd " + quoted(root.string()) + "; export TMPDIR=$PWD/temporary; generate() { exec " +
          on_device + "\"$@\"; }\n" + kScript);
  EXPECT_EQ(both.status, 0) << both.err;
  // What each has written by its end is the beginning of the processor's text.
  const auto expect_beginning = [&](const char* file, std::size_t min_bytes) {
    const std::string text = run("cat " + quoted((root / file).string())).out;
    EXPECT_THAT(text, SizeIs(Ge(min_bytes))) << file;
    EXPECT_EQ(text,
              run(generate + "--max-tokens 1000000 | head -c " + std::to_string(text.size())).out)
        << file;
  };
  expect_beginning("killed", 1);
  expect_beginning("whole", 41);
  const ProgramRun next = run(on_device + "--max-tokens 20");
  EXPECT_EQ(next.status, 0) << next.err;
  EXPECT_EQ(next.out, run(generate + "--max-tokens 20").out);
  EXPECT_TRUE(std::filesystem::is_empty(root / "temporary"));
}

}  // namespace
}  // namespace outrider::test
