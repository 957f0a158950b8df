#include "model/families/gemma3.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/config_section.h"
#include "model/load/layer_windows.h"

namespace outrider {
namespace {

ModelConfig read_gemma3(const ConfigSource& source) {
  ModelConfig config =
      read_decoder_config(source, {.architecture = "gemma3",
                                   .activation_key = "hidden_activation",
                                   .activation = "gelu_pytorch_tanh",
                                   .tied_head = true,
                                   .rope = {.layer_type = "full_attention", .default_theta = 1e6}});
  config.attention_bias = source.has_bias("attention_bias", "blk.0.attn_q.bias");
  for (const ConfigKey& cap : {ConfigKey{"attn_logit_softcapping", "attn_logit_softcapping"},
                               ConfigKey{"final_logit_softcapping", "final_logit_softcapping"}}) {
    if (const double value = source.real(cap).value_or(0); value != 0) {
      source.fail(cap, "absent (Gemma 3 has no soft caps)", fmt::format("{}", value));
    }
  }
  if (source.flag({"use_bidirectional_attention", nullptr}).value_or(false)) {
    source.fail({"use_bidirectional_attention", nullptr}, "false", "true");
  }
  return config;
}

RopeConfig read_local_rope(const ConfigSource& source, const ModelConfig& config) {
  ModelConfig local = config;
  constexpr RopeKeys kKeys = {.theta = {"rope_local_base_freq", "rope.freq_base_swa"},
                              .layer_type = "sliding_attention",
                              .may_be_scaled = false};
  local.rotary_dim = source.rotary_dim(kKeys, config.head_dim);
  local.rope = source.rope(kKeys, local.rotated_dim());
  check_config(local, kReadConfig, source.description());
  return local.rope;
}

std::vector<int> read_windows(const ConfigSource& source, int n_layers) {
  constexpr ConfigKey kWindow = {"sliding_window", "attention.sliding_window"};
  const int window = read_window(source, kWindow, 4096);
  constexpr ConfigKey kPattern = {"sliding_window_pattern", "attention.sliding_window_pattern"};
  const int pattern = source.whole(kPattern).value_or(std::min(6, n_layers + 1));
  if (pattern < 1 || pattern > n_layers + 1) {
    source.fail(kPattern, fmt::format("1 to {}", n_layers + 1), fmt::format("{}", pattern));
  }
  if (auto listed = read_layer_windows(source, n_layers, window)) return *std::move(listed);
  std::vector<int> windows(static_cast<std::size_t>(n_layers), window);
  for (int i = pattern; i <= n_layers; i += pattern) windows[static_cast<std::size_t>(i) - 1] = 0;
  return windows;
}

// GGUF files do not store it. The 27B model, known by its 62 layers, divides by the width of a head
// if heads were as wide as dim / n_heads, the others by the head dimension.
double read_query_scalar(const ConfigSource& source, const ModelConfig& config) {
  constexpr int kLayersOf27B = 62;
  const double of_heads = config.n_layers == kLayersOf27B && source.is_gguf()
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

Gemma3::Gemma3(const ConfigSource& source)
    : Family(read_gemma3(source)),
      local_rope_(read_local_rope(source, config())),
      windows_(read_windows(source, config().n_layers)),
      query_scalar_(read_query_scalar(source, config())) {}

std::vector<RopeTable> Gemma3::ropes() const {
  ModelConfig local = config();
  local.rope = local_rope_;
  return {rope_table(config()), rope_table(local)};
}

float Gemma3::embedding_scale() const {
  return static_cast<float>(std::sqrt(static_cast<double>(config().dim)));
}

// Norms are offsets from 1; the converter to GGUF adds it.
Norm Gemma3::load_norm(const LayerLoader& from, const TensorName& name, int width) const {
  Norm norm = Family::load_norm(from, name, width);
  if (!from.is_gguf()) {
    for (float& weight : norm.weight) weight += 1.0F;
  }
  return norm;
}

DecoderLayer Gemma3::load_layer(LayerLoader& from, int layer) const {
  const ModelConfig& config = this->config();
  const int n_queries = config.n_heads * config.head_dim;
  const int n_keys = config.n_kv_heads * config.head_dim;
  const Bias bias = config.attention_bias ? Bias::always : Bias::never;
  DecoderLayer loaded;
  loaded.before_attention = load_norm(from, {"input_layernorm", "attn_norm"}, config.dim);
  Attention& attention = loaded.attention;
  attention.n_heads = config.n_heads;
  attention.n_kv_heads = config.n_kv_heads;
  attention.head_dim = config.head_dim;
  attention.window = windows_[static_cast<std::size_t>(layer)];
  attention.rope = attention.window > 0 ? kLocal : kGlobal;
  const RopeConfig& rope = attention.rope == kLocal ? local_rope_ : config.rope;
  attention.scale =
      static_cast<float>(rope.attention_factor * rope.attention_factor / std::sqrt(query_scalar_));
  attention.query = from.linear({"self_attn.q_proj", "attn_q"}, n_queries, config.dim, bias);
  attention.key = from.linear({"self_attn.k_proj", "attn_k"}, n_keys, config.dim, bias);
  attention.value = from.linear({"self_attn.v_proj", "attn_v"}, n_keys, config.dim, bias);
  attention.output = from.linear({"self_attn.o_proj", "attn_output"}, config.dim, n_queries, bias);
  attention.query_norm = load_norm(from, {"self_attn.q_norm", "attn_q_norm"}, config.head_dim);
  attention.key_norm = load_norm(from, {"self_attn.k_norm", "attn_k_norm"}, config.head_dim);
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

void Gemma3::compose(PassBuilder& pass, const DecoderLayer& layer) const {
  Rows h = pass.attention(pass.norm(pass.stream(), layer.before_attention), layer.attention);
  pass.add(pass.norm(h, layer.after_attention));
  h = pass.gated_mlp(pass.norm(pass.stream(), layer.before_mlp), layer.mlp);
  pass.add(pass.norm(h, layer.after_mlp));
}

}  // namespace outrider
