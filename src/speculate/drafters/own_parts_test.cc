// SPDX-License-Identifier: Apache-2.0
// Which drafters "auto" finds in a model's directory.
#include "speculate/drafters/own_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "io/safetensors/safetensors_writer.h"
#include "outrider/error.h"
#include "tests/support/goldens/golden_drafts.h"
#include "tests/support/goldens/golden_modules.h"
#include "tests/support/models/tiny_heads.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using test::TemporaryDirectory;
using ::testing::ElementsAre;

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

TEST_F(OwnParts, HeadsInFoldersOfTheirOwnDraft) {
  write("config.json", "{}");
  write("b/config.json", R"({"eagle_version": 3})");
  write("a/config.json", R"({"num_nextn_predict_layers": 1})");
  write("c/config.json", R"({"architectures": ["LlamaForCausalLMEagle3"]})");
  write("d/config.json", R"({"architectures": ["LlamaForCausalLM"]})");
  write("e/config.json", "no JSON");
  write("f/notes.txt", "no head");
  EXPECT_THAT(
      own_parts(directory_.path()),
      ElementsAre("suffix", "mtp:" + place("a"), "eagle:" + place("b"), "eagle:" + place("c")));
}

TEST_F(OwnParts, HeadsOfBlocksAreToldFromOthers) {
  write("config.json", "{}");
  write("a/config.json", R"({"architectures": ["DFlashDraftModel"], "block_size": 16})");
  write("b/config.json", R"({"dflash_config": {"mask_token_id": 3}})");
  write("c/config.json", R"({"speculators_model_type": "dflash"})");
  write("d/config.json", R"({"speculators_model_type": "eagle3"})");
  write("e/config.json", R"({"speculators_model_type": "dspark"})");
  write("f/config.json", R"({"architectures": ["Qwen3DSparkModel"], "markov_rank": 256})");
  write("g/config.json", R"({"dflash_config": {"markov_rank": 256}})");
  write("h/config.json", R"({"dflash_config": 1})");
  EXPECT_THAT(own_parts(directory_.path()),
              ElementsAre("suffix", "dflash:" + place("a"), "dflash:" + place("b"),
                          "dflash:" + place("c"), "eagle:" + place("d"), "dspark:" + place("e"),
                          "dspark:" + place("f"), "dspark:" + place("g"), "dflash:" + place("h")));
}

TEST_F(OwnParts, ModulesThatAreAnnouncedHaveTensors) {
  test::write_hugging_face(test::golden_target(), directory_.path());
  EXPECT_THAT(own_parts(directory_.path()), ElementsAre("suffix"));
  test::write_mtp_modules(test::golden_shape(), 2, directory_.path());
  EXPECT_THAT(own_parts(directory_.path()), ElementsAre("suffix", "mtp"));
  // A checkpoint published without them.
  test::write_hugging_face(test::golden_target(), place("without"));
  std::string config;
  std::getline(std::ifstream(directory_.path() / "config.json"), config, '\0');
  write("without/config.json", config);
  EXPECT_THAT(own_parts(place("without")), ElementsAre("suffix"));
  // A checkpoint with modules that are not supported (Nemotron 3's).
  const std::vector<float> zero = {0};
  const NamedValues module{.name = "mtp.layers.0.eh_proj.weight", .shape = {1, 1}, .values = zero};
  std::filesystem::remove(place("without") + "/model.safetensors");
  write_safetensors(place("without") + "/model.safetensors", {&module, 1}, ElementType::f32);
  EXPECT_THAT(own_parts(place("without")), ElementsAre("suffix"));
}

TEST_F(OwnParts, AssistantsAreModulesInFoldersOfTheirOwn) {
  write("config.json", "{}");
  write("a/config.json", R"({"model_type": "gemma4_assistant"})");
  write("b/config.json", R"({"model_type": "gemma4_text"})");
  write("c/config.json", R"({"model_type": 4})");
  EXPECT_THAT(own_parts(directory_.path()), ElementsAre("suffix", "mtp:" + place("a")));
}

// Published modules, in both forms of file.
TEST_F(OwnParts, ModulesOfPublishedModelsAreFound) {
  for (const std::string& name : test::golden_modules()) {
    const test::GoldenModule golden(name);
    golden.write_directory(place(name));
    EXPECT_THAT(own_parts(place(name)), ElementsAre("suffix", "mtp"));
    EXPECT_THAT(own_parts(golden.gguf()), ElementsAre("suffix", "mtp"));
    EXPECT_THAT(own_parts(test::golden_directory(golden.base) / "model.gguf"),
                ElementsAre("suffix"));
  }
}

TEST_F(OwnParts, PathsAreWrittenAsSpecsReadThem) {
  write("a,b/config.json", "{}");
  write("a,b/medusa/config.json", R"({"medusa_num_heads": 2})");
  EXPECT_THAT(own_parts(directory_.path() / "a,b"),
              ElementsAre("suffix", "medusa:" + place("a\\,b/medusa")));
}

TEST_F(OwnParts, AConfigThatCannotBeReadIsSaid) {
  write("config.json", "[]");
  EXPECT_THROW(own_parts(directory_.path()), Error);
}

}  // namespace
}  // namespace outrider
