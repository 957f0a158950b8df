// SPDX-License-Identifier: Apache-2.0
#include "base/files/file_folder.h"

#include <gtest/gtest.h>

#include <fstream>

#include "outrider/error.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

TEST(FileFolder, IsADirectoryOrFilesInMemory) {
  const test::TemporaryDirectory directory;
  std::ofstream(directory.path() / "config.json") << "{}";
  const FileFolder on_disk(directory.path());
  const FileFolder in_memory("memory", {{"config.json", "{}"}, {"empty", ""}});
  for (const FileFolder& folder : {on_disk, in_memory}) {
    EXPECT_TRUE(folder.has("config.json"));
    EXPECT_FALSE(folder.has("tokenizer.json"));
    EXPECT_EQ(folder.read("config.json").text(), "{}");
    EXPECT_THROW((void)folder.read("tokenizer.json"), Error);
  }
  EXPECT_EQ(on_disk.place("config.json"), (directory.path() / "config.json").string());
  EXPECT_EQ(in_memory.place("config.json"), "memory/config.json");
  EXPECT_EQ(in_memory.read("empty").text(), "");
}

// Texts remain valid after the folder is gone, and copies after their originals.
TEST(FileFolder, TextsLiveOn) {
  FileText text = [] {
    const FileFolder first("memory", {{"a", "text"}});
    const FileFolder copy = first;
    return copy.read("a");
  }();
  EXPECT_EQ(text.text(), "text");
}

}  // namespace
}  // namespace outrider
