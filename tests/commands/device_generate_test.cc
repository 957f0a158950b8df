// SPDX-License-Identifier: Apache-2.0
// outrider generate --device, as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/models/tiny_pair.h"
#include "tests/support/run_program.h"
#include "tests/support/software_device.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class DeviceGenerate : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { write_tiny_pair(directory()); }
  static std::filesystem::path directory() {
    static const TemporaryDirectory kDirectory;
    return kDirectory.path();
  }
  // A text, and its logits as bytes.
  struct Text {
    std::string out;
    std::string logits;
  };
  static std::vector<std::string> words(const std::vector<std::string>& more) {
    std::vector<std::string> all = {"generate",     "--model",   (directory() / "target").string(),
                                    "--prompt",     "Some text", "--max-tokens",
                                    "20",           "--threads", "1",
                                    "--ignore-eos", "--profile", "none"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static Text generate(std::vector<std::string> more) {
    const std::filesystem::path logits = directory() / "logits";
    more.insert(more.end(), {"--weights", "int8", "--logits", logits.string()});
    const ProgramRun run = run_program(words(more));
    EXPECT_EQ(run.status, 0) << run.err;
    std::ifstream file(logits, std::ios::binary);
    return {run.out, std::string(std::istreambuf_iterator<char>(file), {})};
  }
};

TEST_F(DeviceGenerate, WritesTheBytesOfTheProcessor) {
  const Text plain = generate({});
  EXPECT_THAT(plain.logits, Not(IsEmpty()));
  const std::string draft = (directory() / "draft").string();
  for (const std::string& device : {std::string("host"), software_device()}) {
    if (device.empty()) GTEST_SKIP() << kNoSoftwareDevice << "; the host device was compared";
    for (const std::vector<std::string>& more :
         {std::vector<std::string>{"--device", device},
          {"--device", device, "--draft", draft, "--tree", "widths:3,2,1"}}) {
      const Text text = generate(more);
      EXPECT_EQ(text.out, plain.out) << device << " " << more.back();
      EXPECT_TRUE(text.logits == plain.logits) << device << " " << more.back();
    }
  }
}

TEST_F(DeviceGenerate, RefusesByOneLine) {
  const auto refused = [](const std::vector<std::string>& more, int status) {
    const ProgramRun run = run_program(words(more));
    EXPECT_EQ(run.status, status) << run.err;
    EXPECT_THAT(run.out, IsEmpty());
    return run.err;
  };
  EXPECT_THAT(refused({"--device", "host"}, 2), HasSubstr("weights in int8 or int4"));
  EXPECT_THAT(refused({"--device", "gpu"}, 2), HasSubstr("gpu"));
  EXPECT_THAT(refused({"--device", ""}, 2), HasSubstr("--device"));
}

}  // namespace
}  // namespace outrider::test
