// SPDX-License-Identifier: Apache-2.0
#include "model/families/recurrent/granite_hybrid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "model/config_section.h"
#include "model/families/llama.h"
#include "model/load/attending_layers.h"
#include "model/load/expert_loader.h"
#include "model/load/read_size.h"

namespace outrider {
namespace {

bool has_experts(const ConfigSource& source) {
  constexpr ConfigKey kExperts = {"num_local_experts", "expert_count"};
  constexpr int kTransformers = 8;  // transformers' default
  return source.whole(kExperts).value_or(source.is_gguf() ? 0 : kTransformers) != 0;
}

std::vector<bool> read_attends(const ConfigSource& source, int n_layers) {
  if (source.is_gguf()) return read_attends_by_heads(source, n_layers);
  constexpr LayerTypes kTypes = {.attends = "attention", .recurrent = "mamba"};
  auto types = read_attends_by_type(source, "layer_types", kTypes, n_layers);
  // transformers' other name.
  auto same = read_attends_by_type(source, "layers_block_type", kTypes, n_layers);
  if (!types) types = std::move(same);
  return types ? *std::move(types) : std::vector<bool>(static_cast<std::size_t>(n_layers), false);
}

bool read_has_rope(const ConfigSource& source) {
  constexpr ConfigKey kKind = {"position_embedding_type", nullptr};
  if (source.is_gguf()) return granite_gguf_has_rope(source);
  const std::string kind = source.text(kKind).value_or("nope");
  if (kind != "rope" && kind != "nope") source.fail(kKind, "rope or nope", kind);
  return kind == "rope";
}

ModelConfig read_granite_hybrid(const ConfigSource& source) {
  const bool mixture = has_experts(source);
  constexpr ConfigKey kExpertWidth = {"intermediate_size", "feed_forward_length"};
  constexpr ConfigKey kSharedWidth = {"shared_intermediate_size",
                                      "expert_shared_feed_forward_length"};
  DecoderKeys keys;
  keys.n_kv_heads.gguf = nullptr;
  keys.hidden_dim = kSharedWidth;
  // Files without experts may have the MLP's width only under the other name; most have both.
  if (!mixture && source.is_gguf() && !source.has(kSharedWidth)) keys.hidden_dim = kExpertWidth;
  ModelConfig config =
      read_decoder_config(source, {.architecture = "granitemoehybrid", .keys = keys});
  if (source.is_gguf()) config.n_kv_heads = read_heads_of_attending(source, config.n_heads);
  (void)source.whole(kExpertWidth);
  if (mixture) {
    read_experts(source, kExpertWidth, config);
  } else {
    (void)source.whole({"num_experts_per_tok", "expert_used_count"});
  }
  if (!read_has_rope(source)) {
    config.rope = {};
    config.rotary_dim = 0;
  }
  const auto attends = read_attends(source, config.n_layers);
  const auto first = std::find(attends.begin(), attends.end(), true) - attends.begin();
  const std::string bias = fmt::format("blk.{}.attn_q.bias", first);
  config.attention_bias = source.has_bias("attention_bias", bias.c_str());
  check_config(config, kReadConfig, source.description());
  return config;
}

// The width of a head, from the width of all heads together.
int read_head_width(const ConfigSource& source, const ModelConfig& config, int n_heads) {
  constexpr ConfigKey kExpand = {"mamba_expand", nullptr};
  constexpr ConfigKey kWidth = {"mamba_d_head", nullptr};
  if (source.is_gguf()) return read_mamba_head_dim(source, n_heads);
  const int width = read_size(source, kExpand, 2, 1, 64) * config.dim;
  const int of_head = read_size(source, kWidth, width / n_heads, 1, kMaxMambaDim);
  if (of_head * n_heads != width) {
    source.fail(kWidth,
                fmt::format("mamba_expand * hidden_size / mamba_n_heads, {} / {}", width, n_heads),
                fmt::format("{}", of_head));
  }
  return of_head;
}

// Defaults are transformers'.
DeltaShape read_shape(const ConfigSource& source, const ModelConfig& config) {
  constexpr ConfigKey kGroups = {"mamba_n_groups", "ssm.group_count"};
  constexpr ConfigKey kHeads = {"mamba_n_heads", "ssm.time_step_rank"};
  DeltaShape shape;
  shape.n_taps = read_size(source, {"mamba_d_conv", "ssm.conv_kernel"}, 4, 2, kMaxTaps);
  shape.n_key_heads = read_size(source, kGroups, 1, 1, kMaxMambaHeads);
  shape.n_value_heads = read_size(source, kHeads, 128, 1, kMaxMambaHeads);
  shape.key_dim = read_size(source, {"mamba_d_state", "ssm.state_size"}, 256, 1, kMaxMambaDim);
  shape.value_dim = read_head_width(source, config, shape.n_value_heads);
  require_whole_groups(source, kHeads, kGroups, shape);
  // With several groups, transformers has one norm of all channels, llama.cpp one per group.
  if (source.is_gguf() && shape.n_key_heads > 1) {
    source.fail(kGroups, "1 (readers of such files differ on norms of groups)",
                fmt::format("{}", shape.n_key_heads));
  }
  return shape;
}

// Refuses keys of models that compute something else. Keys about training, or about running in
// parts, have no effect here.
void read_other_keys(const ConfigSource& source) {
  constexpr ConfigKey kNorms = {"normalization_function", nullptr};
  const std::string norms = source.text(kNorms).value_or("rmsnorm");
  if (norms != "rmsnorm") source.fail(kNorms, "rmsnorm", norms);
  (void)source.text({"init_method", nullptr});
  (void)source.whole({"mamba_chunk_size", nullptr});
  (void)source.real({"time_step_min", nullptr});
  (void)source.real({"time_step_max", nullptr});
}

}  // namespace

GraniteHybrid::GraniteHybrid(const ConfigSource& source)
    : Family(read_granite_hybrid(source)),
      attends_(read_attends(source, config().n_layers)),
      has_rope_(read_has_rope(source)),
      multipliers_(read_granite_multipliers(source, config())) {
  const auto first = std::find(attends_.begin(), attends_.end(), false) - attends_.begin();
  constexpr ConfigKey kFilterBias = {"mamba_conv_bias", nullptr};
  form_.shape = read_shape(source, config());
  form_.filter_bias =
      source.is_gguf()
          ? source.has_bias(nullptr, fmt::format("blk.{}.ssm_conv1d.bias", first).c_str())
          : source.flag(kFilterBias).value_or(true);
  form_.product_bias =
      source.has_bias("mamba_proj_bias", fmt::format("blk.{}.ssm_in.bias", first).c_str());
  read_step_limits(source, form_);
  read_other_keys(source);
}

std::vector<RopeTable> GraniteHybrid::ropes() const {
  return has_rope_ ? Family::ropes() : std::vector<RopeTable>{};
}

RecurrentLayers GraniteHybrid::recurrent_layers() const {
  return {.n = static_cast<int>(std::count(attends_.begin(), attends_.end(), false)),
          .shape = shape_of_mamba(form_.shape)};
}

// GGUF names it a shared expert if there are other experts.
GatedMlp GraniteHybrid::load_mlp(LayerLoader& from) const {
  const int dim = config().dim;
  const int hidden = config().hidden_dim;
  GatedMlp loaded;
  if (!from.is_gguf()) {
    const auto half = [&](int first) {
      return from.linear_rows({"shared_mlp.input_linear", nullptr}, 2 * hidden, first, hidden, dim,
                              Bias::never);
    };
    loaded.gate = half(0);
    loaded.up = half(hidden);
    loaded.down = from.linear({"shared_mlp.output_linear", nullptr}, dim, hidden, Bias::never);
    return loaded;
  }
  const bool shared = config().n_experts > 0;
  const auto linear = [&](const char* alone, const char* beside, int n, int k) {
    return from.linear({nullptr, shared ? beside : alone}, n, k, Bias::never);
  };
  loaded.gate = linear("ffn_gate", "ffn_gate_shexp", hidden, dim);
  loaded.up = linear("ffn_up", "ffn_up_shexp", hidden, dim);
  loaded.down = linear("ffn_down", "ffn_down_shexp", dim, hidden);
  return loaded;
}

DecoderLayer GraniteHybrid::load_layer(LayerLoader& from, int layer) const {
  DecoderLayer loaded;
  if (attends_[static_cast<std::size_t>(layer)]) {
    // The converter to GGUF permutes query and key rows as for Llama, even without RoPE.
    loaded = load_llama_layer(from, config(), {.mlp = false, .interleaved = from.is_gguf()});
    const auto of_rope = static_cast<float>(config().rope.attention_factor);
    loaded.attention.scale = multipliers_.scores * of_rope * of_rope;
    if (!has_rope_) loaded.attention.rope = kNoRope;
  } else {
    loaded.before_attention = load_norm(from, {"input_layernorm", "attn_norm"}, config().dim);
    loaded.before_mlp = load_norm(from, {"post_attention_layernorm", "ffn_norm"}, config().dim);
    loaded.mamba = load_mamba(from, form_, "mamba.", config().dim, config().norm_epsilon);
  }
  loaded.mlp = load_mlp(from);
  if (config().n_experts > 0) {
    loaded.experts = load_stacked_experts(from, config(), ExpertWeights::softmax_used,
                                          {.router = "block_sparse_moe.router.layer",
                                           .gate_and_up = "block_sparse_moe.input_linear.weight",
                                           .down = "block_sparse_moe.output_linear.weight"});
  }
  return loaded;
}

void GraniteHybrid::compose(PassBuilder& pass, const DecoderLayer& layer) const {
  Rows read = pass.norm(pass.stream(), layer.before_attention);
  pass.add(layer.mamba.output.empty() ? pass.attention(read, layer.attention)
                                      : pass.mamba(read, layer.mamba),
           multipliers_.residual);
  read = pass.norm(pass.stream(), layer.before_mlp);
  if (!layer.experts.empty()) pass.add(pass.experts(read, layer.experts), multipliers_.residual);
  pass.add(pass.gated_mlp(read, layer.mlp), multipliers_.residual);
}

}  // namespace outrider
