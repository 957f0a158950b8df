// SPDX-License-Identifier: Apache-2.0
#include "model/families/recurrent/qwen_hybrid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "base/elementary.h"
#include "model/config_section.h"
#include "model/families/experts/qwen3_moe.h"
#include "model/families/llama.h"
#include "model/load/attending_layers.h"
#include "model/load/modules_behind.h"
#include "model/load/read_size.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr ConfigKey kInterval = {"full_attention_interval", "full_attention_interval"};

std::vector<bool> read_attends(const ConfigSource& source, int n_layers, int n_modules) {
  constexpr ConfigKey kRecurrent = {nullptr, "attention.recurrent_layers"};
  const auto n = static_cast<std::size_t>(n_layers);
  const int interval = source.whole(kInterval).value_or(4);
  if (interval < 1) source.fail(kInterval, "at least 1", fmt::format("{}", interval));
  std::vector<bool> attends;
  for (int i = 1; i <= n_layers; ++i) attends.push_back(i % interval == 0);
  if (const auto recurrent = source.flags(kRecurrent)) {
    // Modules may be listed as well.
    if (recurrent->size() != n && recurrent->size() != n + static_cast<std::size_t>(n_modules)) {
      source.fail(kRecurrent, fmt::format("{} flags", n), fmt::format("{}", recurrent->size()));
    }
    for (std::size_t i = 0; i < n; ++i) attends[i] = !(*recurrent)[i];
  }
  return read_attends_by_type(source, "layer_types",
                              {.attends = "full_attention", .recurrent = "linear_attention"},
                              n_layers)
      .value_or(attends);
}

// Defaults are transformers'.
DeltaShape read_shape(const ConfigSource& source, bool is_tiled) {
  constexpr ConfigKey kValueHeads = {"linear_num_value_heads", "ssm.time_step_rank"};
  constexpr ConfigKey kValuesWidth = {nullptr, "ssm.inner_size"};
  constexpr int kMaxHeads = 1024;
  constexpr int kMaxDim = 512;
  DeltaShape shape;
  shape.n_taps = read_size(source, {"linear_conv_kernel_dim", "ssm.conv_kernel"}, 4, 2, kMaxTaps);
  shape.n_key_heads =
      read_size(source, {"linear_num_key_heads", "ssm.group_count"}, 16, 1, kMaxHeads);
  shape.n_value_heads = read_size(source, kValueHeads, 32, 1, kMaxHeads);
  shape.key_dim = read_size(source, {"linear_key_head_dim", "ssm.state_size"}, 128, 1, kMaxDim);
  shape.is_tiled = is_tiled;
  if (shape.n_value_heads % shape.n_key_heads != 0) {
    source.fail(kValueHeads, fmt::format("a multiple of the key heads, {}", shape.n_key_heads),
                fmt::format("{}", shape.n_value_heads));
  }
  if (!source.is_gguf()) {
    shape.value_dim = read_size(source, {"linear_value_head_dim", nullptr}, 128, 1, kMaxDim);
    return shape;
  }
  const int width =
      read_size(source, kValuesWidth, 0, shape.n_value_heads, shape.n_value_heads * kMaxDim);
  if (width % shape.n_value_heads != 0) {
    source.fail(kValuesWidth, fmt::format("a multiple of the heads, {}", shape.n_value_heads),
                fmt::format("{}", width));
  }
  shape.value_dim = width / shape.n_value_heads;
  return shape;
}

// Refuses keys of models that compute something else. Keys about the state's type and about modules
// have no effect here.
void read_other_keys(const ConfigSource& source) {
  constexpr ConfigKey kGated = {"attn_output_gate", nullptr};
  if (!source.flag(kGated).value_or(true)) source.fail(kGated, "true", "false");
  constexpr ConfigKey kGate = {"output_gate_type", nullptr};
  if (const std::string kind = source.text(kGate).value_or("swish");
      kind != "swish" && kind != "silu") {
    source.fail(kGate, "swish", kind);
  }
  (void)source.text({"mamba_ssm_dtype", nullptr});
  (void)source.whole({"mtp_num_hidden_layers", nullptr});
  (void)source.flag({"mtp_use_dedicated_embeddings", nullptr});
  constexpr ConfigKey kWindow = {"use_sliding_window", nullptr};
  if (source.flag(kWindow).value_or(false)) source.fail(kWindow, "false", "true");
  // Text has one position per token, so all sections of a head rotate alike.
  (void)source.wholes({nullptr, "rope.dimension_sections"});
}

ModelConfig read_hybrid(const ConfigSource& source, const QwenHybridForm& form) {
  constexpr ConfigKey kExpertWidth = {"moe_intermediate_size", "expert_feed_forward_length"};
  DecoderKeys keys;
  if (!form.has_mlp_width) {
    (void)source.whole(keys.hidden_dim);
    keys.hidden_dim = kExpertWidth;
  }
  ModelConfig config =
      read_decoder_config(source, {.architecture = form.architecture,
                                   .keys = keys,
                                   .rope = {.share = "partial_rotary_factor",
                                            .default_share = 0.25,
                                            .has_sections = form.has_rope_sections}});
  config.n_layers -= read_n_modules_behind(source);
  if (form.has_experts) read_experts(source, kExpertWidth, config);
  return config;
}

// x / sqrt(sum of squares + 1e-6), written as a norm: weight x / sqrt(mean of squares + epsilon).
Norm division_by_length(int n, double weight) {
  return {.weight = std::vector<float>(static_cast<std::size_t>(n),
                                       static_cast<float>(weight / std::sqrt(n))),
          .epsilon = static_cast<float>(1e-6 / n)};
}

}  // namespace

QwenHybrid::QwenHybrid(const ConfigSource& source, const QwenHybridForm& form)
    : Family([&] {
        ModelConfig config = read_hybrid(source, form);
        if (form.has_experts && form.has_mlp_width) {
          note_expert_layers(read_layers_with_experts(source, config.n_layers), config);
        }
        const auto attends = read_attends(source, config.n_layers, read_n_modules_behind(source));
        const auto first = std::find(attends.begin(), attends.end(), true) - attends.begin();
        const std::string bias = fmt::format("blk.{}.attn_q.bias", first);
        config.attention_bias = source.has_bias("attention_bias", bias.c_str());
        return config;
      }()),
      form_(form),
      attends_(read_attends(source, config().n_layers, read_n_modules_behind(source))),
      shape_(read_shape(source, form.is_tiled_in_gguf && source.is_gguf())),
      has_experts_(static_cast<std::size_t>(config().n_layers), form.has_experts) {
  read_other_keys(source);
  if (!form.has_experts) return;
  weights_ = read_expert_weights(source, true);
  // transformers normalises the weights of a row's experts to sum 1 in every Qwen3.5, llama.cpp in
  // all of these files.
  if (weights_ != ExpertWeights::softmax_used && (!form.has_mlp_width || source.is_gguf())) {
    source.fail({"norm_topk_prob", "expert_weights_norm"}, "true", "false");
  }
  if (form.has_mlp_width) has_experts_ = read_layers_with_experts(source, config().n_layers);
  constexpr int kMaxWidth = 1 << 22;  // as for hidden_dim
  shared_dim_ =
      read_size(source, {"shared_expert_intermediate_size", "expert_shared_feed_forward_length"},
                512, 1, kMaxWidth);
}

RecurrentLayers QwenHybrid::recurrent_layers() const {
  return {.n = static_cast<int>(std::count(attends_.begin(), attends_.end(), false)),
          .shape = shape_of_delta(shape_)};
}

// GGUF has the 1 added already.
Norm QwenHybrid::load_norm(const LayerLoader& from, const TensorName& name, int width) const {
  Norm norm = Family::load_norm(from, name, width);
  if (from.is_gguf()) return norm;
  for (float& weight : norm.weight) weight += 1;
  return norm;
}

void QwenHybrid::load_products(LayerLoader& from, DeltaNet& net) const {
  const int dim = config().dim;
  const int keys = shape_.keys_width();
  const int values = shape_.values_width();
  const int n_heads = shape_.n_value_heads;
  const auto rows = [&](const TensorName& name, int n_stored, const StoredRows& which) {
    return from.linear_rows(name, n_stored, dim, Bias::never, which);
  };
  if (form_.has_joined_products) {
    constexpr TensorName kGates = {"linear_attn.in_proj_ba", "ssm_ba"};
    const int group = shape_.group();
    net.beta = rows(kGates, 2 * n_heads, {.n = n_heads, .run = group, .stride = 2 * group});
    net.decay = rows(kGates, 2 * n_heads,
                     {.first = group, .n = n_heads, .run = group, .stride = 2 * group});
  } else {
    net.beta = from.linear({"linear_attn.in_proj_b", "ssm_beta"}, n_heads, dim, Bias::never);
    net.decay = from.linear({"linear_attn.in_proj_a", "ssm_alpha"}, n_heads, dim, Bias::never);
  }
  // Qwen3-Next's first GGUF files have them joined as well.
  constexpr TensorName kJoined = {"linear_attn.in_proj_qkvz", "ssm_in"};
  if (form_.has_joined_products && (!from.is_gguf() || from.has(kJoined))) {
    const int of_values = shape_.group() * shape_.value_dim;
    const int stride = 2 * (shape_.key_dim + of_values);
    const auto part = [&](int first, int n, int run) {
      return rows(kJoined, 2 * (keys + values),
                  {.first = first, .n = n, .run = run, .stride = stride});
    };
    net.query = part(0, keys, shape_.key_dim);
    net.key = part(shape_.key_dim, keys, shape_.key_dim);
    net.value = part(2 * shape_.key_dim, values, of_values);
    net.gate = part(2 * shape_.key_dim + of_values, values, of_values);
    return;
  }
  constexpr TensorName kConvolved = {"linear_attn.in_proj_qkv", "attn_qkv"};
  const int n_stored = shape_.convolved_width();
  net.query = rows(kConvolved, n_stored, {.first = 0, .n = keys});
  net.key = rows(kConvolved, n_stored, {.first = keys, .n = keys});
  net.value = rows(kConvolved, n_stored, {.first = 2 * keys, .n = values});
  net.gate = from.linear({"linear_attn.in_proj_z", "attn_gate"}, values, dim, Bias::never);
}

DeltaNet QwenHybrid::load_delta_net(LayerLoader& from) const {
  DeltaNet net;
  net.shape = shape_;
  load_products(from, net);
  net.filter =
      from.filter({"linear_attn.conv1d", "ssm_conv1d"}, shape_.convolved_width(), shape_.n_taps);
  net.decay_bias = from.plain_vector({"linear_attn.dt_bias", "ssm_dt.bias"}, shape_.n_value_heads);
  net.decay_rates = from.plain_vector({"linear_attn.A_log", "ssm_a"}, shape_.n_value_heads);
  for (float& rate : net.decay_rates) {
    if (!from.is_gguf()) rate = static_cast<float>(-portable_exp(rate));
    if (!(rate <= 0)) {  // otherwise a state would grow with every token
      throw Error("load model", "ssm_a", "numbers of at most 0", fmt::format("{}", rate));
    }
  }
  net.query_norm = division_by_length(shape_.key_dim, 1 / std::sqrt(shape_.key_dim));
  net.key_norm = division_by_length(shape_.key_dim, 1);
  // The one norm whose weight is stored without offset.
  net.norm = Family::load_norm(from, {"linear_attn.norm", "ssm_norm"}, shape_.value_dim);
  net.output = from.linear({"linear_attn.out_proj", "ssm_out"}, config().dim, shape_.values_width(),
                           Bias::never);
  return net;
}

// Rows of queries and of their gates alternate, head by head.
Attention QwenHybrid::load_attention(LayerLoader& from) const {
  const ModelConfig& config = this->config();
  const Bias bias = config.attention_bias ? Bias::always : Bias::never;
  const int n_queries = config.n_heads * config.head_dim;
  const int n_keys = config.n_kv_heads * config.head_dim;
  Attention loaded = attention_of(config);
  const auto of_queries = [&](int first) {
    return from.linear_rows(
        {"self_attn.q_proj", "attn_q"}, 2 * n_queries, config.dim, bias,
        {.first = first, .n = n_queries, .run = config.head_dim, .stride = 2 * config.head_dim});
  };
  loaded.query = of_queries(0);
  loaded.gate = of_queries(config.head_dim);
  loaded.key = from.linear({"self_attn.k_proj", "attn_k"}, n_keys, config.dim, bias);
  loaded.value = from.linear({"self_attn.v_proj", "attn_v"}, n_keys, config.dim, bias);
  loaded.output = from.linear({"self_attn.o_proj", "attn_output"}, config.dim, n_queries, bias);
  loaded.query_norm = load_norm(from, {"self_attn.q_norm", "attn_q_norm"}, config.head_dim);
  loaded.key_norm = load_norm(from, {"self_attn.k_norm", "attn_k_norm"}, config.head_dim);
  return loaded;
}

SharedExpert QwenHybrid::load_shared_expert(LayerLoader& from) const {
  const int dim = config().dim;
  SharedExpert loaded;
  loaded.mlp.gate =
      from.linear({"mlp.shared_expert.gate_proj", "ffn_gate_shexp"}, shared_dim_, dim, Bias::never);
  loaded.mlp.up =
      from.linear({"mlp.shared_expert.up_proj", "ffn_up_shexp"}, shared_dim_, dim, Bias::never);
  loaded.mlp.down =
      from.linear({"mlp.shared_expert.down_proj", "ffn_down_shexp"}, dim, shared_dim_, Bias::never);
  loaded.gate.matrix = from.f32_row({"mlp.shared_expert_gate", "ffn_gate_inp_shexp"}, dim);
  return loaded;
}

std::optional<ModuleNames> QwenHybrid::module_names() const {
  return ModuleNames{.embedding_norm = {"pre_fc_norm_embedding", "nextn.enorm"},
                     .state_norm = {"pre_fc_norm_hidden", "nextn.hnorm"},
                     .join = {"fc", "nextn.eh_proj"},
                     .head_norm = {"norm", "nextn.shared_head_norm"},
                     .apart = "mtp."};
}

DecoderLayer QwenHybrid::load_module_layer(LayerLoader& from) const {
  return load_layer_of(from, true, form_.has_experts);
}

DecoderLayer QwenHybrid::load_layer(LayerLoader& from, int layer) const {
  const auto index = static_cast<std::size_t>(layer);
  return load_layer_of(from, attends_[index], has_experts_[index]);
}

DecoderLayer QwenHybrid::load_layer_of(LayerLoader& from, bool attends, bool has_experts) const {
  const int dim = config().dim;
  const int hidden = config().hidden_dim;
  DecoderLayer loaded;
  loaded.before_attention = load_norm(from, {"input_layernorm", "attn_norm"}, dim);
  if (attends) {
    loaded.attention = load_attention(from);
  } else {
    loaded.delta = load_delta_net(from);
  }
  loaded.before_mlp = load_norm(from, {"post_attention_layernorm", "post_attention_norm"}, dim);
  if (has_experts) {
    loaded.experts =
        load_experts(from, config(), weights_,
                     {.block = "mlp.", .gate = "gate_proj", .up = "up_proj", .down = "down_proj"});
    loaded.shared_expert = load_shared_expert(from);
    return loaded;
  }
  loaded.mlp.gate = from.linear({"mlp.gate_proj", "ffn_gate"}, hidden, dim, Bias::never);
  loaded.mlp.up = from.linear({"mlp.up_proj", "ffn_up"}, hidden, dim, Bias::never);
  loaded.mlp.down = from.linear({"mlp.down_proj", "ffn_down"}, dim, hidden, Bias::never);
  return loaded;
}

void QwenHybrid::compose(PassBuilder& pass, const DecoderLayer& layer) const {
  Rows read = pass.norm(pass.stream(), layer.before_attention);
  pass.add(layer.delta.output.empty() ? pass.attention(read, layer.attention)
                                      : pass.delta_net(read, layer.delta));
  read = pass.norm(pass.stream(), layer.before_mlp);
  if (layer.experts.empty()) return pass.add(pass.gated_mlp(read, layer.mlp));
  pass.add(pass.experts(read, layer.experts));
  pass.add_shared_expert(read, layer.shared_expert);
}

Qwen3Next::Qwen3Next(const ConfigSource& source)
    : QwenHybrid(source,
                 {.architecture = "qwen3_next", .has_joined_products = true, .has_experts = true}) {
}

Qwen35::Qwen35(const ConfigSource& source)
    : QwenHybrid(source,
                 {.architecture = "qwen3_5", .is_tiled_in_gguf = true, .has_rope_sections = true}) {
}

Qwen35Moe::Qwen35Moe(const ConfigSource& source)
    : QwenHybrid(source, {.architecture = "qwen3_5_moe",
                          .is_tiled_in_gguf = true,
                          .has_rope_sections = true,
                          .has_mlp_width = false,
                          .has_experts = true}) {}

}  // namespace outrider
