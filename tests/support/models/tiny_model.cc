// SPDX-License-Identifier: Apache-2.0
#include "tests/support/models/tiny_model.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace outrider::test {
namespace {

// Splitmix64 (Steele, Lea, Flood, 2014), and from it nearly normal numbers: the sum of twelve
// uniform ones less six. It needs no library function, so that the bits are the same on all
// machines.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : state_(seed) {}
  float normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(next() >> 11) * 0x1p-53;
    return static_cast<float>(sum);
  }

 private:
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

}  // namespace

const TinyTensor* TinyModel::find(const std::string& name) const {
  for (const TinyTensor& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

TinyTensor& TinyModel::at(const std::string& name) {
  for (TinyTensor& tensor : tensors) {
    if (tensor.name == name) return tensor;
  }
  throw std::out_of_range(name);
}

TinyModel make_tiny_model(const TinyShape& shape) {
  TinyModel model{shape, {}};
  Noise noise(shape.seed);
  const auto add = [&](const std::string& name, std::vector<std::int64_t> size, float centre,
                       float spread) {
    std::int64_t n = 1;
    for (const std::int64_t extent : size) n *= extent;
    TinyTensor tensor{name, std::move(size), std::vector<float>(static_cast<std::size_t>(n))};
    for (float& value : tensor.values) value = centre + spread * noise.normal();
    model.tensors.push_back(std::move(tensor));
  };
  // Matrices preserve the magnitude of their inputs: rows have a norm of about 1.
  const auto linear = [&](const std::string& name, int rows, int width, bool bias) {
    add(name + ".weight", {rows, width}, 0, 1 / std::sqrt(static_cast<float>(width)));
    if (bias) add(name + ".bias", {rows}, 0, 0.3F);
  };
  const auto norm = [&](const std::string& name) { add(name + ".weight", {shape.dim}, 1, 0.1F); };

  const int queries = shape.n_heads * shape.head_dim;
  const int keys = shape.n_kv_heads * shape.head_dim;
  const float row_spread = shape.logit_spread / std::sqrt(static_cast<float>(shape.dim));
  add("model.embed_tokens.weight", {shape.vocabulary_size, shape.dim}, 0,
      shape.tied_head ? row_spread : 1);
  for (int i = 0; i < shape.n_layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    norm(layer + "input_layernorm");
    linear(layer + "self_attn.q_proj", queries, shape.dim, shape.attention_bias);
    linear(layer + "self_attn.k_proj", keys, shape.dim, shape.attention_bias);
    linear(layer + "self_attn.v_proj", keys, shape.dim, shape.attention_bias);
    linear(layer + "self_attn.o_proj", shape.dim, queries, shape.attention_bias);
    norm(layer + "post_attention_layernorm");
    for (int expert = 0; expert < shape.n_experts; ++expert) {
      const std::string prefix = fmt::format("{}block_sparse_moe.experts.{}.", layer, expert);
      linear(prefix + "w1", shape.hidden_dim, shape.dim, false);
      linear(prefix + "w2", shape.dim, shape.hidden_dim, false);
      linear(prefix + "w3", shape.hidden_dim, shape.dim, false);
    }
    if (shape.n_experts > 0) {
      linear(layer + "block_sparse_moe.gate", shape.n_experts, shape.dim, false);
      continue;
    }
    linear(layer + "mlp.gate_proj", shape.hidden_dim, shape.dim, shape.mlp_bias);
    linear(layer + "mlp.up_proj", shape.hidden_dim, shape.dim, shape.mlp_bias);
    linear(layer + "mlp.down_proj", shape.dim, shape.hidden_dim, shape.mlp_bias);
  }
  norm("model.norm");
  if (!shape.tied_head) add("lm_head.weight", {shape.vocabulary_size, shape.dim}, 0, row_spread);
  return model;
}

TinyModel with_noise(const TinyModel& model, float share, std::uint64_t seed) {
  TinyModel noisy = model;
  Noise noise(seed);
  for (TinyTensor& tensor : noisy.tensors) {
    if (tensor.shape.size() != 2) continue;
    double squares = 0;
    for (const float value : tensor.values) squares += static_cast<double>(value) * value;
    const auto deviation =
        static_cast<float>(std::sqrt(squares / static_cast<double>(tensor.values.size())));
    for (float& value : tensor.values) value += share * deviation * noise.normal();
  }
  return noisy;
}

std::string config_json(const TinyShape& shape, ElementType type) {
  using Json = nlohmann::ordered_json;
  Json config = {
      {"architectures", {"LlamaForCausalLM"}},
      {"model_type", "llama"},
      {"attention_bias", shape.attention_bias},
      {"bos_token_id", 0},
      {"eos_token_id", 1},
      {"head_dim", shape.head_dim},
      {"hidden_act", "silu"},
      {"hidden_size", shape.dim},
      {"intermediate_size", shape.hidden_dim},
      {"max_position_embeddings", shape.context_length},
      {"mlp_bias", shape.mlp_bias},
      {"num_attention_heads", shape.n_heads},
      {"num_hidden_layers", shape.n_layers},
      {"num_key_value_heads", shape.n_kv_heads},
      {"rms_norm_eps", 1e-5},
      {"rope_theta", shape.rope.theta},
      {"tie_word_embeddings", shape.tied_head},
      {"torch_dtype", type == ElementType::f32   ? "float32"
                      : type == ElementType::f16 ? "float16"
                                                 : "bfloat16"},
      {"vocab_size", shape.vocabulary_size},
  };
  if (shape.mask_token != kNoToken) {
    config["pard_token"] = shape.mask_token;
    config["spd_type"] = "pard";
  }
  if (shape.n_experts > 0) {
    config["architectures"] = {"MixtralForCausalLM"};
    config["model_type"] = "mixtral";
    config.erase("attention_bias");
    config.erase("mlp_bias");
    config["num_local_experts"] = shape.n_experts;
    config["num_experts_per_tok"] = shape.n_experts_used;
  }
  switch (shape.rope.scaling) {
    case RopeConfig::Scaling::none:
      config["rope_scaling"] = nullptr;
      break;
    case RopeConfig::Scaling::linear:
      config["rope_scaling"] = {{"type", "linear"}, {"factor", shape.rope.factor}};
      break;
    case RopeConfig::Scaling::llama3:
      config["rope_scaling"] = {{"rope_type", "llama3"},
                                {"factor", shape.rope.factor},
                                {"low_freq_factor", shape.rope.low_frequency_factor},
                                {"high_freq_factor", shape.rope.high_frequency_factor},
                                {"original_max_position_embeddings", shape.rope.original_context}};
      break;
    case RopeConfig::Scaling::yarn:
      config["rope_scaling"] = {{"rope_type", "yarn"},
                                {"factor", shape.rope.factor},
                                {"attention_factor", shape.rope.attention_factor},
                                {"original_max_position_embeddings", shape.rope.original_context}};
      break;
    case RopeConfig::Scaling::longrope:
      config["rope_scaling"] = {{"rope_type", "longrope"},
                                {"short_factor", shape.rope.divisors},
                                {"long_factor", shape.rope.long_divisors},
                                {"attention_factor", shape.rope.magnitude},
                                {"original_max_position_embeddings", shape.rope.original_context}};
      break;
    case RopeConfig::Scaling::proportional:  // not in any Llama
      throw std::logic_error("proportional");
  }
  return config.dump(1) + "\n";
}

}  // namespace outrider::test
