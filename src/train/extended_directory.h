// A copy of a Hugging Face directory with tensors added.
#ifndef OUTRIDER_TRAIN_EXTENDED_DIRECTORY_H_
#define OUTRIDER_TRAIN_EXTENDED_DIRECTORY_H_

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "io/tensor_source.h"
#include "train/model_directory.h"

namespace outrider::train {

// Copies config.json with `added_keys` set, generation_config.json, the tokenizer and the weights
// of `from` into `directory`, every file whole or not at all. The files of weights are copied byte
// by byte as shards "model-0000i-of-0000n.safetensors", the last of which holds `added`, and
// model.safetensors.index.json names them all. Throws Error on what is missing or cannot be
// written, on a tensor that `from` has already, and if the directory holds a model.safetensors,
// which loaders would prefer to the index.
void write_extended_directory(const std::filesystem::path& from,
                              const std::filesystem::path& directory,
                              const std::vector<NamedTensor>& added, ElementType type,
                              const nlohmann::ordered_json& added_keys);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_EXTENDED_DIRECTORY_H_
