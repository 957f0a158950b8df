// SPDX-License-Identifier: Apache-2.0
// A model in a program's memory, for Model::from_memory().
#ifndef OUTRIDER_MODEL_IN_MEMORY_H_
#define OUTRIDER_MODEL_IN_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace outrider {

// A tensor with its name in a safetensors file.
struct ModelTensor {
  std::string name;
  // Element type: "f32", "bf16" or "f16". Others ("f64", "i8", "i16", "i32", "i64", "u8",
  // "boolean", and any other word) may be present, as in files; plain matrices are not read from
  // them.
  std::string type;
  std::vector<std::int64_t> shape;  // row-major, outermost first
  std::span<const std::byte> data;  // little-endian, whole; need not be aligned
};

// The contents of a Hugging Face directory.
struct ModelInMemory {
  std::string config;                // the text of config.json
  std::vector<ModelTensor> tensors;  // names must be unique
  // The tokenizer's files by name: tokenizer.json, or tokenizer.model, spiece.model or
  // sentencepiece.bpe.model; and if there are any, tokenizer_config.json, special_tokens_map.json,
  // added_tokens.json, chat_template.jinja and generation_config.json.
  std::map<std::string, std::string, std::less<>> files = {};
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_IN_MEMORY_H_
