// SPDX-License-Identifier: Apache-2.0
// The families that this build supports.
#ifndef OUTRIDER_MODEL_FAMILIES_REGISTRY_H_
#define OUTRIDER_MODEL_FAMILIES_REGISTRY_H_

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "base/files/file_folder.h"
#include "io/gguf/gguf.h"
#include "model/families/family.h"
#include "model/load/config_source.h"

namespace outrider {

// The names of a family, and its reader of configurations. A family with two names in GGUF has an
// entry for each.
struct FamilyEntry {
  const char* class_name;  // config.json: architectures
  const char* model_type;  // config.json: model_type
  const char* gguf;        // general.architecture; null: its files have another family's
  std::unique_ptr<const Family> (*read)(const ConfigSource& source);
};

// In the order of the documentation.
std::span<const FamilyEntry> families();

// The family of a Hugging Face directory's config.json (and generation_config.json), or of a GGUF
// file. Throws Error, with the key, on anything missing, malformed, out of bounds, unsupported, or
// with a value that the family does not know.
std::unique_ptr<const Family> read_family(const std::filesystem::path& directory);
std::unique_ptr<const Family> read_family(const FileFolder& folder);
std::unique_ptr<const Family> read_family(const GgufFile& file);

// Reads the configuration `json` of `file`, of a head that drafts for a model: the shape of its
// decoder layer under a Llama's keys, whatever architecture it names. Throws as read_family does.
ModelConfig read_head_config(nlohmann::json json, const std::filesystem::path& file);

// "llama, qwen2, ...": model types.
std::string known_families();

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_REGISTRY_H_
