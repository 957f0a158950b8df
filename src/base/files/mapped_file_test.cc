// SPDX-License-Identifier: Apache-2.0
#include "base/files/mapped_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <span>
#include <string>

#include "outrider/error.h"
#include "tests/support/resident_bytes.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

TEST(MappedFile, ReleasedBytesLeaveMemoryAndComeAgain) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "file";
  std::string contents(std::size_t{1} << 20, ' ');
  for (std::size_t i = 0; i < contents.size(); ++i) contents[i] = static_cast<char>(i * 7 % 251);
  std::ofstream(path, std::ios::binary) << contents;

  const MappedFile file(path);
  const auto intact = [&] {
    return std::equal(contents.begin(), contents.end(), file.bytes().begin(), file.bytes().end(),
                      [](char c, std::byte b) { return static_cast<std::byte>(c) == b; });
  };
  ASSERT_TRUE(intact());
  const auto before = test::resident_bytes(path);
  if (!before) GTEST_SKIP() << "no /proc/self/smaps that names the file";
  EXPECT_GE(*before, contents.size() / 2);  // nearly all, unless memory is short

  // Neither end is at a page boundary.
  file.release(file.bytes().subspan(1000, contents.size() - 2000));
  EXPECT_LE(test::resident_bytes(path), contents.size() / 8);
  file.release({});
  file.release(std::as_bytes(std::span(contents)));  // memory of another owner
  file.release(file.bytes().last(1));
  EXPECT_TRUE(intact());
}

// A Git LFS pointer, which stands for a file that was not downloaded, is reported as such.
TEST(MappedFile, AGitLfsPointerIsCalledWhatItIs) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "model.safetensors";
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, 'a') +
      "\nsize 4242424242\n";
  std::ofstream(path) << pointer;
  try {
    const MappedFile file(path);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("a Git LFS pointer"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos);
  }
  std::ofstream(path) << pointer.substr(0, 20);  // too short to be one
  EXPECT_EQ(MappedFile(path).bytes().size(), 20u);
}

}  // namespace
}  // namespace outrider
