// SPDX-License-Identifier: Apache-2.0
#include "model/families/gpt/gpt_oss.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "model/load/layer_windows.h"

namespace outrider {
namespace {

// Defaults of transformers and llama.cpp: the published models' numbers.
constexpr int kDefaultWindow = 128;
constexpr double kDefaultLimit = 7;

// Published files repeat two numbers under the names of the training code.
void check_repeated(const ConfigSource& source, const char* name, double right) {
  const ConfigKey key = {name, nullptr};
  const double repeated = source.real(key).value_or(right);
  if (repeated != right) source.fail(key, fmt::format("{}", right), fmt::format("{}", repeated));
}

ModelConfig read_gpt_oss(const ConfigSource& source) {
  ModelConfig config =
      read_decoder_config(source, {.architecture = "gpt_oss", .rope = {.default_theta = 150000}});
  if (config.rope.scaling != RopeConfig::Scaling::yarn) {
    // If config.json has none, transformers uses the published models'.
    source.fail({"rope_parameters", "rope.scaling.type"}, "yarn", "no such scaling");
  }
  config.attention_bias = source.is_gguf()
                              ? source.has_bias(nullptr, "blk.0.attn_q.bias")
                              : source.flag({"attention_bias", nullptr}).value_or(true);
  read_experts(source, {"intermediate_size", "expert_feed_forward_length"}, config);
  check_repeated(source, "experts_per_token", config.n_experts_used);
  check_repeated(source, "initial_context_length", config.rope.original_context);
  // The first converters to GGUF wrote nothing about it: the published models do not round the
  // bounds.
  if (source.is_gguf() && !source.has({nullptr, "rope.scaling.yarn_truncate"})) {
    config.rope.whole_bounds = false;
  }
  return config;
}

// If the file does not list its layers, every second one has a window, beginning with the first.
std::vector<int> read_windows(const ConfigSource& source, int n_layers) {
  const int window =
      read_window(source, {"sliding_window", "attention.sliding_window"}, kDefaultWindow);
  if (auto listed = read_layer_windows(source, n_layers, window)) return *std::move(listed);
  std::vector<int> windows(static_cast<std::size_t>(n_layers));
  for (std::size_t i = 0; i < windows.size(); i += 2) windows[i] = window;
  return windows;
}

float read_limit(const ConfigSource& source) {
  constexpr ConfigKey kLimit = {"swiglu_limit", nullptr};
  const double limit = source.real(kLimit).value_or(kDefaultLimit);
  if (!(limit > 0 && limit < 1e30)) source.fail(kLimit, "above 0", fmt::format("{}", limit));
  return static_cast<float>(limit);
}

// Rows of gates, or of ups, which alternate.
StoredRows every_second(int first, int n) {
  return {.first = first, .n = n, .run = 1, .stride = 2};
}

// GGUF stacks gate, up and down separately. A directory has one tensor in which gates and ups
// alternate: in MXFP4 row by row, with separate blocks and scales; in floats transposed, as in
// transformers.
void load_matrices(LayerLoader& from, const ModelConfig& config, Experts& experts) {
  const int n = config.n_experts;
  const int dim = config.dim;
  const int hidden = config.expert_dim;
  if (from.is_gguf()) {
    experts.gate = from.stacked({nullptr, "ffn_gate_exps"}, ".weight", n, hidden, dim);
    experts.up = from.stacked({nullptr, "ffn_up_exps"}, ".weight", n, hidden, dim);
    experts.down = from.stacked({nullptr, "ffn_down_exps"}, ".weight", n, dim, hidden);
    return;
  }
  const TensorName gates_and_ups = {"mlp.experts.gate_up_proj", nullptr};
  const TensorName downs = {"mlp.experts.down_proj", nullptr};
  const auto load = [&](const TensorName& name, int n_stored, int k, StoredRows rows) {
    if (from.has(name, "_blocks")) return from.stacked_blocks(name, n, n_stored, k, rows);
    rows.turned = true;
    return from.stacked(name, "", n, n_stored, k, rows);
  };
  experts.gate = load(gates_and_ups, 2 * hidden, dim, every_second(0, hidden));
  experts.up = load(gates_and_ups, 2 * hidden, dim, every_second(1, hidden));
  experts.down = load(downs, dim, hidden, {});
}

void load_biases(const LayerLoader& from, const ModelConfig& config, Experts& experts) {
  const int n = config.n_experts;
  const int hidden = config.expert_dim;
  experts.router_bias = from.bias({"mlp.router", "ffn_gate_inp"}, n);
  if (from.is_gguf()) {
    experts.gate_bias = from.stacked_vectors({nullptr, "ffn_gate_exps"}, ".bias", n, hidden);
    experts.up_bias = from.stacked_vectors({nullptr, "ffn_up_exps"}, ".bias", n, hidden);
    experts.down_bias = from.stacked_vectors({nullptr, "ffn_down_exps"}, ".bias", n, config.dim);
    return;
  }
  const auto half = [&](int first) {
    return from.stacked_vectors({"mlp.experts.gate_up_proj_bias", nullptr}, "", n, 2 * hidden,
                                every_second(first, hidden));
  };
  experts.gate_bias = half(0);
  experts.up_bias = half(1);
  experts.down_bias =
      from.stacked_vectors({"mlp.experts.down_proj_bias", nullptr}, "", n, config.dim);
}

}  // namespace

GptOss::GptOss(const ConfigSource& source)
    : Family(read_gpt_oss(source)),
      windows_(read_windows(source, config().n_layers)),
      limit_(read_limit(source)) {}

DecoderLayer GptOss::load_layer(LayerLoader& from, int layer) const {
  DecoderLayer loaded = load_llama_layer(from, config(), {.mlp_norm = false, .mlp = false});
  loaded.attention.window = windows_[static_cast<std::size_t>(layer)];
  loaded.attention.sinks = from.vector({"self_attn.sinks", "attn_sinks"}, config().n_heads,
                                       from.is_gguf() ? ".weight" : "");
  loaded.before_mlp =
      load_norm(from, {"post_attention_layernorm", "post_attention_norm"}, config().dim);
  Experts& experts = loaded.experts;
  experts.weights = ExpertWeights::softmax_used;
  experts.n_used = config().n_experts_used;
  experts.activation = Activation::clamped_swish;
  experts.limit = limit_;
  experts.router =
      from.f32_matrix({"mlp.router", "ffn_gate_inp"}, config().n_experts, config().dim);
  load_matrices(from, config(), experts);
  load_biases(from, config(), experts);
  return loaded;
}

}  // namespace outrider
