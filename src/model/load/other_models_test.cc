// SPDX-License-Identifier: Apache-2.0
// Errors name what a file is if it is no model. The marks are those of PEFT (adapter_config.json),
// Meta's releases (params.json), transformers (quantization_config), mlx-lm (quantization) and
// llama.cpp 0.7.0's converters (general.type, clip).
#include "model/load/other_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "io/test_files.h"
#include "outrider/error.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

auto fails(const std::string& text) { return ThrowsMessage<Error>(HasSubstr(text)); }

TEST(OtherModels, DirectoriesWithoutConfigAreNamedByTheirFiles) {
  const test::TemporaryDirectory directory;
  EXPECT_NO_THROW(refuse_other_directory(directory.path()));
  std::ofstream(directory.path() / "params.json") << "{}";
  EXPECT_THAT([&] { refuse_other_directory(directory.path()); }, fails("its trainer's own form"));
  std::ofstream(directory.path() / "adapter_config.json") << "{}";
  EXPECT_THAT([&] { refuse_other_directory(directory.path()); }, fails("an adapter (LoRA"));
}

TEST(OtherModels, GgufFilesAreNamedByTheirType) {
  const auto refuse = [](const char* key, const char* value) {
    return [key, value] {
      const auto bytes = test::Gguf().text(key, value).bytes();
      refuse_other_gguf(*parse_gguf(bytes, "other.gguf"));
    };
  };
  EXPECT_NO_THROW(refuse("general.type", "model")());
  EXPECT_THAT(refuse("general.type", "adapter"), fails("an adapter (LoRA)"));
  EXPECT_THAT(refuse("general.type", "mmproj"), fails("a projector"));
  EXPECT_THAT(refuse("general.architecture", "clip"), fails("a projector"));
}

}  // namespace
}  // namespace outrider
