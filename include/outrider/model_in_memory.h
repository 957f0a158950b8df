// A model that a program has in its memory, for Model::from_memory().
#ifndef OUTRIDER_MODEL_IN_MEMORY_H_
#define OUTRIDER_MODEL_IN_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace outrider {

// A tensor by the name that a safetensors file would have it under.
struct ModelTensor {
  std::string name;
  // Of its elements: "f32", "bf16" or "f16". Others ("f64", "i8", "i16", "i32", "i64", "u8",
  // "boolean", and any other word) may be there, as in files; no plain matrix is read from them.
  std::string type;
  std::vector<std::int64_t> shape;  // row-major, outermost first
  std::span<const std::byte> data;  // little-endian, whole; need not be aligned
};

// What a Hugging Face directory holds.
struct ModelInMemory {
  std::string config;                // the text of config.json
  std::vector<ModelTensor> tensors;  // each name once
  // The tokenizer's files by their names: tokenizer.json, or tokenizer.model, spiece.model or
  // sentencepiece.bpe.model; and, where there are any, tokenizer_config.json,
  // special_tokens_map.json, added_tokens.json, chat_template.jinja and generation_config.json.
  std::map<std::string, std::string, std::less<>> files = {};
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_IN_MEMORY_H_
