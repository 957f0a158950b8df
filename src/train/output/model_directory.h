// SPDX-License-Identifier: Apache-2.0
// Writes the result of a training run as a Hugging Face directory.
#ifndef OUTRIDER_TRAIN_OUTPUT_MODEL_DIRECTORY_H_
#define OUTRIDER_TRAIN_OUTPUT_MODEL_DIRECTORY_H_

#include <torch/torch.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/tensor_source.h"
#include "model/config.h"

namespace outrider::train {

// config.json of a Llama-family model, as Hugging Face transformers reads it.
nlohmann::ordered_json llama_config_json(const ModelConfig& config, ElementType type);

// Writes the parameters of a module under their names, f32 or bf16. `file` is a name within the
// directory, which is created if needed.
void write_parameters(const std::filesystem::path& directory, const std::string& file,
                      const torch::nn::Module& module, ElementType type);

// A tensor and its name in a file: floats, int64 or boolean.
struct NamedTensor {
  std::string name;
  torch::Tensor values;
};

// The same for a list of named tensors.
void write_tensors(const std::filesystem::path& directory, const std::string& file,
                   const std::vector<NamedTensor>& tensors, ElementType type);

void write_json(const std::filesystem::path& directory, const std::string& file,
                const nlohmann::ordered_json& json);

// Reads a file that holds a JSON object. Throws Error.
nlohmann::ordered_json read_json(const std::filesystem::path& file);

// Copies a file, if it exists, under the same name.
void copy_file_whole(const std::filesystem::path& file, const std::filesystem::path& directory);

// Copies tokenizer.json and the files that belong to it, if they exist.
void copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& directory);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OUTPUT_MODEL_DIRECTORY_H_
