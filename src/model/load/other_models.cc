// SPDX-License-Identifier: Apache-2.0
#include "model/load/other_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <system_error>

#include "outrider/error.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "load model";

// Files that show what a directory contains.
struct Sign {
  const char* file;
  const char* meaning;
};
constexpr Sign kSigns[] = {
    {"adapter_config.json", "an adapter (LoRA or the like): merge it into its model first"},
    {"adapter_model.safetensors", "an adapter (LoRA or the like): merge it into its model first"},
    {"model_index.json", "a diffusion pipeline"},
    {"mlc-chat-config.json", "a model compiled for MLC"},
    {"openvino_model.xml", "a model converted for OpenVINO"},
    {"params.json", "a checkpoint in its trainer's own form: convert it to Hugging Face's"},
};

}  // namespace

void refuse_other_directory(const std::filesystem::path& directory) {
  std::error_code ignored;
  for (const Sign& sign : kSigns) {
    if (!std::filesystem::exists(directory / sign.file, ignored)) continue;
    throw Error(kOperation, directory.string(),
                "a Hugging Face directory (config.json, *.safetensors) or a .gguf file",
                fmt::format("{} ({})", sign.meaning, sign.file));
  }
}

void refuse_other_gguf(const GgufFile& file) {
  const auto refuse = [&file](const char* what) {
    throw Error(kOperation, file.description(), "a model", what);
  };
  const GgufValue* const type = file.find_metadata("general.type");
  const auto* const name = type == nullptr ? nullptr : std::get_if<std::string>(type);
  if (name != nullptr && *name == "adapter") {
    refuse("an adapter (LoRA): merge it into its model first");
  }
  if (name != nullptr && *name == "mmproj") refuse("a projector of images or sound, no text model");
  if (name != nullptr && *name == "imatrix") refuse("an importance matrix for quantisers");
  const GgufValue* const architecture = file.find_metadata("general.architecture");
  const auto* const family =
      architecture == nullptr ? nullptr : std::get_if<std::string>(architecture);
  if (family != nullptr && *family == "clip") {
    refuse("a projector of images or sound (architecture clip), no text model");
  }
}

}  // namespace outrider
