// SPDX-License-Identifier: Apache-2.0
// The folders that huggingface_hub 1.x writes (docs: "Understand caching"), including links.
#include "base/files/hub_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "outrider/error.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class HubCache : public ::testing::Test {
 protected:
  HubCache() : model_(directory_.path() / "models--owner--name") {
    fs::create_directories(model_ / "blobs");
    fs::create_directories(model_ / "refs");
  }
  fs::path add_snapshot(const std::string& hash) const {
    const fs::path snapshot = model_ / "snapshots" / hash;
    fs::create_directories(snapshot);
    std::ofstream(model_ / "blobs" / ("of" + hash)) << "{}";
    fs::create_symlink(fs::path("..") / ".." / "blobs" / ("of" + hash), snapshot / "config.json");
    return snapshot;
  }
  void name_main(const std::string& text) const { std::ofstream(model_ / "refs" / "main") << text; }

  test::TemporaryDirectory directory_;
  fs::path model_;
};

TEST_F(HubCache, OpensTheSnapshotThatMainNames) {
  add_snapshot("aa11");
  const fs::path named = add_snapshot("bb22");
  name_main("bb22");
  EXPECT_EQ(without_hub_cache(model_), named);
  name_main("bb22\n");
  EXPECT_EQ(without_hub_cache(model_), named);
  // A snapshot itself, and any other folder, is returned unchanged.
  EXPECT_EQ(without_hub_cache(named), named);
  EXPECT_EQ(without_hub_cache(directory_.path()), directory_.path());
  EXPECT_EQ(without_hub_cache("nothing/there"), "nothing/there");
}

TEST_F(HubCache, OpensTheOnlySnapshot) {
  const fs::path only = add_snapshot("aa11");
  EXPECT_EQ(without_hub_cache(model_), only);
}

TEST_F(HubCache, SaysWhichSnapshotIsMissing) {
  add_snapshot("aa11");
  name_main("cc33");
  EXPECT_THAT([&] { without_hub_cache(model_); }, ThrowsMessage<Error>(HasSubstr("cc33")));
  // No content of the file leads out of the folder.
  name_main("../../..");
  EXPECT_EQ(without_hub_cache(model_), model_ / "snapshots" / "aa11");
  add_snapshot("bb22");
  EXPECT_THAT([&] { without_hub_cache(model_); }, ThrowsMessage<Error>(HasSubstr("2 of them")));
}

// A directory with a model is used itself, whatever else it contains.
TEST_F(HubCache, AModelOfTheFoldersOwnCounts) {
  add_snapshot("aa11");
  std::ofstream(model_ / "config.json") << "{}";
  EXPECT_EQ(without_hub_cache(model_), model_);
}

}  // namespace
}  // namespace outrider
