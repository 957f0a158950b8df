// SPDX-License-Identifier: Apache-2.0
#include "model/families/gemma/gemma.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/families/llama.h"
#include "model/load/layer_windows.h"

namespace outrider {
namespace {

ModelConfig read_gemma(const ConfigSource& source, const GemmaForm& form) {
  ModelConfig config = read_decoder_config(source, {.architecture = form.architecture,
                                                    .activation_key = "hidden_activation",
                                                    .activation = "gelu_pytorch_tanh",
                                                    .tied_head = true,
                                                    .rope = form.rope});
  config.attention_bias = source.has_bias("attention_bias", "blk.0.attn_q.bias");
  if (source.flag({"use_bidirectional_attention", nullptr}).value_or(false)) {
    source.fail({"use_bidirectional_attention", nullptr}, "false", "true");
  }
  return config;
}

std::vector<int> read_windows(const ConfigSource& source, const GemmaForm& form, int n_layers) {
  constexpr ConfigKey kWindow = {"sliding_window", "attention.sliding_window"};
  if (source.has(kWindow) && !source.whole(kWindow)) source.fail(kWindow, "a number", "null");
  const int window = read_window(source, kWindow, 4096);
  // Some files of Gemma 2 have the key twice; transformers reads the other one.
  constexpr ConfigKey kTwin = {"sliding_window_size", nullptr};
  if (const int twin = source.whole(kTwin).value_or(window); twin != window) {
    source.fail(kTwin, fmt::format("{}, as sliding_window", window), fmt::format("{}", twin));
  }
  const int every =
      source.whole(form.whole_every).value_or(std::min(form.default_whole_every, n_layers + 1));
  if (every < 1 || every > n_layers + 1) {
    source.fail(form.whole_every, fmt::format("1 to {}", n_layers + 1), fmt::format("{}", every));
  }
  if (auto listed = read_layer_windows(source, n_layers, window)) return *std::move(listed);
  std::vector<int> windows(static_cast<std::size_t>(n_layers), window);
  for (int i = every; i <= n_layers; i += every) windows[static_cast<std::size_t>(i) - 1] = 0;
  return windows;
}

// Missing in GGUF files. Models of 27B divide by the width that heads of dim / n_heads would have,
// the others by the head dimension.
double read_query_scalar(const ConfigSource& source, const GemmaForm& form,
                         const ModelConfig& config) {
  const double of_heads = config.n_layers == form.layers_of_27b && source.is_gguf()
                              ? static_cast<double>(config.dim) / config.n_heads
                              : config.head_dim;
  constexpr ConfigKey kScalar = {"query_pre_attn_scalar", nullptr};
  const double scalar = source.real(kScalar).value_or(source.is_gguf() ? of_heads : 256);
  if (!(scalar >= 1e-6 && scalar <= 1e9)) {
    source.fail(kScalar, "1e-6 to 1e9", fmt::format("{}", scalar));
  }
  return scalar;
}

}  // namespace

float read_soft_cap(const ConfigSource& source, const ConfigKey& key, double otherwise) {
  const double cap = source.real(key).value_or(source.has(key) ? 0 : otherwise);
  // Far beyond real ones; neither the cap nor its inverse leaves f32's range.
  if (cap != 0 && !(cap >= 1e-3 && cap <= 1e6)) {
    source.fail(key, "1e-3 to 1e6, or 0 (no cap)", fmt::format("{}", cap));
  }
  return static_cast<float>(cap);
}

Gemma::Gemma(const ConfigSource& source, const GemmaForm& form)
    : Family(read_gemma(source, form)),
      windows_(read_windows(source, form, config().n_layers)),
      query_scalar_(read_query_scalar(source, form, config())),
      score_cap_(read_soft_cap(source, {"attn_logit_softcapping", "attn_logit_softcapping"},
                               form.default_score_cap)),
      logit_cap_(read_soft_cap(source, {"final_logit_softcapping", "final_logit_softcapping"},
                               form.default_logit_cap)) {}

float Gemma::embedding_scale() const {
  return static_cast<float>(std::sqrt(static_cast<double>(config().dim)));
}

float Gemma::attention_scale(const RopeConfig& rope) const {
  return static_cast<float>(rope.attention_factor * rope.attention_factor /
                            std::sqrt(query_scalar_));
}

// Norm weights are stored as offsets from 1; the converter to GGUF adds the 1.
Norm Gemma::load_norm(const LayerLoader& from, const TensorName& name, int width) const {
  Norm norm = Family::load_norm(from, name, width);
  if (!from.is_gguf()) {
    for (float& weight : norm.weight) weight += 1.0F;
  }
  return norm;
}

DecoderLayer Gemma::load_layer(LayerLoader& from, int layer) const {
  const ModelConfig& config = this->config();
  const int n_queries = config.n_heads * config.head_dim;
  const int n_keys = config.n_kv_heads * config.head_dim;
  const Bias bias = config.attention_bias ? Bias::always : Bias::never;
  DecoderLayer loaded;
  loaded.before_attention = load_norm(from, {"input_layernorm", "attn_norm"}, config.dim);
  Attention& attention = loaded.attention;
  attention = attention_of(config);
  attention.scale = attention_scale(config.rope);
  attention.softcap = score_cap_;
  attention.window = windows_[static_cast<std::size_t>(layer)];
  attention.query = from.linear({"self_attn.q_proj", "attn_q"}, n_queries, config.dim, bias);
  attention.key = from.linear({"self_attn.k_proj", "attn_k"}, n_keys, config.dim, bias);
  attention.value = from.linear({"self_attn.v_proj", "attn_v"}, n_keys, config.dim, bias);
  attention.output = from.linear({"self_attn.o_proj", "attn_output"}, config.dim, n_queries, bias);
  loaded.after_attention =
      load_norm(from, {"post_attention_layernorm", "post_attention_norm"}, config.dim);
  loaded.before_mlp = load_norm(from, {"pre_feedforward_layernorm", "ffn_norm"}, config.dim);
  loaded.mlp.activation = Activation::gelu_tanh;
  loaded.mlp.gate =
      from.linear({"mlp.gate_proj", "ffn_gate"}, config.hidden_dim, config.dim, Bias::never);
  loaded.mlp.up =
      from.linear({"mlp.up_proj", "ffn_up"}, config.hidden_dim, config.dim, Bias::never);
  loaded.mlp.down =
      from.linear({"mlp.down_proj", "ffn_down"}, config.dim, config.hidden_dim, Bias::never);
  loaded.after_mlp = load_norm(from, {"post_feedforward_layernorm", "post_ffw_norm"}, config.dim);
  return loaded;
}

}  // namespace outrider
