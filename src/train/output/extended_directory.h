// SPDX-License-Identifier: Apache-2.0
// Copies a Hugging Face directory and adds tensors.
#ifndef OUTRIDER_TRAIN_OUTPUT_EXTENDED_DIRECTORY_H_
#define OUTRIDER_TRAIN_OUTPUT_EXTENDED_DIRECTORY_H_

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "io/tensor_source.h"
#include "train/output/model_directory.h"

namespace outrider::train {

// Copies config.json with `added_keys` set, generation_config.json, the tokenizer and the weights
// of `from` into `directory`. Every file is written whole or not at all. The weight files are
// copied byte by byte as shards "model-0000i-of-0000n.safetensors". The last shard holds `added`,
// and model.safetensors.index.json lists all shards. Throws Error for a missing file, a failed
// write, and a tensor that `from` already has. Throws Error, too, if the directory holds a
// model.safetensors, since loaders would prefer it to the index.
void write_extended_directory(const std::filesystem::path& from,
                              const std::filesystem::path& directory,
                              const std::vector<NamedTensor>& added, ElementType type,
                              const nlohmann::ordered_json& added_keys);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OUTPUT_EXTENDED_DIRECTORY_H_
