// SPDX-License-Identifier: Apache-2.0
#include "base/files/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "outrider/error.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(AtomicFile, AppearsOnCommit) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "file";
  AtomicFile file(path);
  file.write("one ");
  file.write("two");
  EXPECT_FALSE(std::filesystem::exists(path));
  file.commit();
  EXPECT_EQ(text_of(path), "one two");
  EXPECT_FALSE(std::filesystem::exists(path.string() + AtomicFile::kPartialSuffix));
}

TEST(AtomicFile, WhatWasWrittenCanBeOverwritten) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "file";
  AtomicFile file(path);
  file.write("one two");
  file.overwrite(0, std::as_bytes(std::span(std::string_view("ONE"))));
  file.write(" three");
  file.commit();
  EXPECT_EQ(text_of(path), "ONE two three");
}

TEST(AtomicFile, WritesThroughLinks) {
  namespace fs = std::filesystem;
  const test::TemporaryDirectory directory;
  const fs::path folder = directory.path() / "folder";
  fs::create_directory(folder);
  write_file_atomically(folder / "file", "old");
  fs::create_symlink("folder/file", directory.path() / "near");
  fs::create_symlink(directory.path() / "near", directory.path() / "far");
  fs::create_symlink("folder/none", directory.path() / "dangling");
  write_file_atomically(directory.path() / "far", "new");
  write_file_atomically(directory.path() / "dangling", "first");
  EXPECT_TRUE(fs::is_symlink(directory.path() / "near"));
  EXPECT_TRUE(fs::is_symlink(directory.path() / "far"));
  EXPECT_TRUE(fs::is_symlink(directory.path() / "dangling"));
  EXPECT_EQ(text_of(folder / "file"), "new");
  EXPECT_EQ(text_of(folder / "none"), "first");
  fs::create_symlink("circle", directory.path() / "circle");
  EXPECT_THROW(write_file_atomically(directory.path() / "circle", "x"), Error);
  EXPECT_TRUE(fs::is_symlink(directory.path() / "circle"));
}

TEST(AtomicFile, LeftAloneItLeavesWhatWasThere) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "file";
  write_file_atomically(path, "old");
  {
    AtomicFile file(path);
    file.write("new");
  }
  EXPECT_EQ(text_of(path), "old");
  EXPECT_FALSE(std::filesystem::exists(path.string() + AtomicFile::kPartialSuffix));
  write_file_atomically(path, "newer");
  EXPECT_EQ(text_of(path), "newer");
}

TEST(AtomicFile, HasOneWriterAtATime) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "file";
  {
    AtomicFile first(path);
    first.write("first");
    EXPECT_THROW(AtomicFile{path}, Error);
    first.commit();
    EXPECT_EQ(text_of(path), "first");
    write_file_atomically(path, "second");  // the first one has finished
  }
  EXPECT_EQ(text_of(path), "second");
}

TEST(AtomicFile, ReplacesWhatAKilledWriterLeft) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "file";
  const std::string partial = path.string() + AtomicFile::kPartialSuffix;
  std::ofstream(partial) << "much of something";
  // Nor is a file damaged that has another name too, or that may not be written.
  std::filesystem::create_hard_link(partial, directory.path() / "precious");
  std::filesystem::permissions(partial, std::filesystem::perms::owner_read);
  write_file_atomically(path, "new");
  EXPECT_EQ(text_of(path), "new");
  EXPECT_EQ(text_of(directory.path() / "precious"), "much of something");
  EXPECT_NE(std::filesystem::status(path).permissions(), std::filesystem::perms::owner_read);
}

TEST(AtomicFile, FollowsNoLinkInThePartialFilesPlace) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "file";
  write_file_atomically(directory.path() / "precious", "precious");
  std::filesystem::create_symlink("precious", path.string() + AtomicFile::kPartialSuffix);
  EXPECT_THROW(write_file_atomically(path, "new"), Error);
  EXPECT_EQ(text_of(directory.path() / "precious"), "precious");
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(AtomicFile, KeepsThePermissionsOfWhatItReplaces) {
  using std::filesystem::perms;
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "file";
  write_file_atomically(path, "old");
  // Also permissions that a new file would not get.
  const perms open_to_all = perms::owner_read | perms::owner_write | perms::others_write;
  for (const perms mode :
       {perms::owner_read | perms::owner_write, perms::owner_read, open_to_all}) {
    std::filesystem::permissions(path, mode);
    write_file_atomically(path, "new");
    EXPECT_EQ(std::filesystem::status(path).permissions(), mode);
  }
}

TEST(AtomicFile, SaysWhyItCannotBeMade) {
  const test::TemporaryDirectory directory;
  try {
    AtomicFile file(directory.path() / "nowhere" / "file");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("No such file"), std::string::npos) << error.what();
  }
}

TEST(AtomicFile, RoomThatIsAskedForIsNoContents) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "file";
  AtomicFile file(path);
  file.reserve(0);
  file.reserve(100000);
  file.write("short");
  file.commit();
  EXPECT_EQ(text_of(path), "short");
}

// No disk has space for this; a file system that cannot tell in advance accepts it.
TEST(AtomicFile, SaysAtOnceThatThereIsNoRoom) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "file";
  {
    AtomicFile file(path);
    try {
      file.reserve(std::uint64_t{1} << 60);
      GTEST_SKIP() << "this file system gives no room in advance";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("[write file] " + path.string()), std::string::npos);
    }
  }
  EXPECT_FALSE(std::filesystem::exists(path.string() + AtomicFile::kPartialSuffix));
}

// A file-size limit simulates a full disk.
TEST(AtomicFile, NothingIsLostWhenThereIsNoRoom) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "file";
  write_file_atomically(path, "old");
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit tight = before;
  tight.rlim_cur = 100;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  EXPECT_THROW(write_file_atomically(path, std::string(1000, 'x')), Error);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(text_of(path), "old");
  EXPECT_FALSE(std::filesystem::exists(path.string() + AtomicFile::kPartialSuffix));
}

}  // namespace
}  // namespace outrider
