// What the drafter "auto" finds in a model's directory.
#include "speculate/drafters/own_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "outrider/error.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using ::testing::ElementsAre;
using testing::TemporaryDirectory;

class OwnParts : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = directory_.path() / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::string place(const std::string& name) const { return (directory_.path() / name).string(); }

  TemporaryDirectory directory_;
};

TEST_F(OwnParts, AModelAloneHasWhatNeedsNothing) {
  write("config.json", "{}");
  EXPECT_THAT(own_parts(directory_.path()), ElementsAre("suffix"));
  EXPECT_THAT(own_parts(place("model.gguf")), ElementsAre("suffix"));
}

TEST_F(OwnParts, ModulesBehindTheLayersDraft) {
  write("config.json", R"({"num_nextn_predict_layers": 1})");
  EXPECT_THAT(own_parts(directory_.path()), ElementsAre("suffix", "mtp"));
  write("config.json", R"({"num_nextn_predict_layers": 0})");
  EXPECT_THAT(own_parts(directory_.path()), ElementsAre("suffix"));
}

TEST_F(OwnParts, HeadsInFoldersOfTheirOwnDraft) {
  write("config.json", "{}");
  write("eagle/config.json", "{}");
  write("mtp/config.json", "{}");
  write("medusa/notes.txt", "no head");
  EXPECT_THAT(own_parts(directory_.path()),
              ElementsAre("suffix", "mtp:" + place("mtp"), "eagle:" + place("eagle")));
}

TEST_F(OwnParts, ModulesBehindTheLayersComeBeforeThoseInAFolder) {
  write("config.json", R"({"num_nextn_predict_layers": 2})");
  write("mtp/config.json", "{}");
  EXPECT_THAT(own_parts(directory_.path()), ElementsAre("suffix", "mtp"));
}

TEST_F(OwnParts, PathsAreWrittenAsSpecsReadThem) {
  write("a,b/config.json", "{}");
  write("a,b/medusa/config.json", "{}");
  EXPECT_THAT(own_parts(directory_.path() / "a,b"),
              ElementsAre("suffix", "medusa:" + place("a\\,b/medusa")));
}

TEST_F(OwnParts, AConfigThatCannotBeReadIsSaid) {
  write("config.json", "[]");
  EXPECT_THROW(own_parts(directory_.path()), Error);
}

}  // namespace
}  // namespace outrider
