// SPDX-License-Identifier: Apache-2.0
// Random models of the Llama family, or Mixtrals, small enough for tests, written as the files of
// real models. The same shape and seed give the same bytes on every machine.
#ifndef OUTRIDER_TESTS_SUPPORT_MODELS_TINY_MODEL_H_
#define OUTRIDER_TESTS_SUPPORT_MODELS_TINY_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "io/tensor_source.h"
#include "model/config.h"
#include "outrider/types.h"

namespace outrider::test {

struct TinyShape {
  std::uint64_t seed = 1;
  int vocabulary_size = 300;
  int context_length = 256;
  int n_layers = 2;
  int dim = 64;
  int n_heads = 4;
  int n_kv_heads = 2;
  int head_dim = 16;
  int hidden_dim = 96;
  int n_experts = 0;  // of each layer: a Mixtral; 0: a Llama
  int n_experts_used = 0;
  bool tied_head = false;
  bool attention_bias = false;
  bool mlp_bias = false;
  RopeConfig rope;
  TokenId mask_token = kNoToken;  // ModelConfig's; kNoToken: none
  // Approximate standard deviation of the logits: 0 is a uniform model, 10 a greedy one.
  float logit_spread = 2.5F;
};

// Named as in Hugging Face files. Values row-major.
struct TinyTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

struct TinyModel {
  TinyShape shape;
  std::vector<TinyTensor> tensors;

  const TinyTensor* find(const std::string& name) const;  // null if there is none
  TinyTensor& at(const std::string& name);                // throws std::out_of_range
};

TinyModel make_tiny_model(const TinyShape& shape);

// Adds normal noise of `share` times its standard deviation to every matrix. The result is a
// drafter: the smaller the share, the more of its tokens are accepted.
TinyModel with_noise(const TinyModel& model, float share, std::uint64_t seed);

// Bytes of the values in a stored type (f32, f16, bf16, q8_0, q4_0, q4_1, q6_k), row by row of
// `width` elements. The width must be a multiple of the block.
std::vector<std::byte> encode_values(const std::vector<float>& values, std::int64_t width,
                                     ElementType type);

// Writes config.json, generation_config.json, model.safetensors (type: f32, f16 or bf16) and
// tokenizer.json. The directory is created if needed.
void write_hugging_face(const TinyModel& model, const std::filesystem::path& directory,
                        ElementType type = ElementType::f32);

// GGUF keeps vectors in f32. `matrices` is for all matrices except the output matrix (and a tied
// embedding), which get `head`. Query and key rows are interleaved as in GGUF.
struct GgufTypes {
  ElementType matrices = ElementType::f32;
  ElementType head = ElementType::f32;
};
void write_gguf(const TinyModel& model, const std::filesystem::path& file,
                const GgufTypes& types = {});

// The config.json of a shape.
std::string config_json(const TinyShape& shape, ElementType type = ElementType::f32);

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_MODELS_TINY_MODEL_H_
