// SPDX-License-Identifier: Apache-2.0
#include "model/families/gemma/gemma4.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>

#include "model/config_section.h"
#include "model/families/gemma/gemma.h"
#include "model/families/llama.h"
#include "model/load/expert_loader.h"
#include "model/load/layer_windows.h"
#include "model/load/read_size.h"

namespace outrider {
namespace {

constexpr ConfigKey kWholeHeadDim = {"global_head_dim", "attention.key_length"};
constexpr ConfigKey kBorrowing = {"num_kv_shared_layers", "attention.shared_kv_layers"};
// Far above any model's; a table's rows have n_layers times this width.
constexpr int kMaxInputDim = 1 << 12;

// Checks a number that GGUF repeats for values and for the rotated part of a head.
void require_same(const ConfigSource& source, const ConfigKey& key, int right) {
  const int said = source.whole(key).value_or(right);
  if (said != right) source.fail(key, fmt::format("{}", right), fmt::format("{}", said));
}

ModelConfig read_decoder(const ConfigSource& source) {
  DecoderKeys keys;
  keys.head_dim.gguf = "attention.key_length_swa";
  keys.value_dim.gguf = "attention.value_length_swa";
  // Some files have a number for each layer.
  keys.n_kv_heads.gguf = nullptr;
  keys.hidden_dim.gguf = nullptr;
  DecoderDefaults defaults = {.architecture = "gemma4",
                              .keys = keys,
                              .activation_key = "hidden_activation",
                              .activation = "gelu_pytorch_tanh",
                              .widening = source.is_gguf() ? 1 : 0,
                              .tied_head = true,
                              .has_rope = false};
  return read_decoder_config(source, defaults);
}

// The last layer reads all tokens, whatever a directory says, as in transformers.
std::vector<int> read_windows(const ConfigSource& source, int n_layers) {
  constexpr ConfigKey kWindow = {"sliding_window", "attention.sliding_window"};
  constexpr ConfigKey kPattern = {nullptr, "attention.sliding_window_pattern"};
  constexpr int kWholeEvery = 6;
  const int window = read_window(source, kWindow, 512);
  if (source.is_gguf()) {
    const auto pattern = source.flags(kPattern);
    if (!pattern) source.fail(kPattern, "there", "no such key");
    if (pattern->size() != static_cast<std::size_t>(n_layers)) {
      source.fail(kPattern, fmt::format("{} flags", n_layers), fmt::format("{}", pattern->size()));
    }
    std::vector<int> windows;
    for (const bool is_local : *pattern) windows.push_back(is_local ? window : 0);
    return windows;
  }
  std::vector<int> windows(static_cast<std::size_t>(n_layers), window);
  if (auto listed = read_layer_windows(source, n_layers, window)) {
    windows = *std::move(listed);
  } else {
    for (std::size_t i = kWholeEvery; i <= windows.size(); i += kWholeEvery) windows[i - 1] = 0;
  }
  windows.back() = 0;
  return windows;
}

// The one number shared by all layers of a kind; `otherwise` if there is no such layer.
int of_kind(const ConfigSource& source, const ConfigKey& key, const std::vector<int>& numbers,
            const std::vector<int>& windows, bool is_whole, int otherwise) {
  std::optional<int> known;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if ((windows[i] == 0) != is_whole) continue;
    if (known.value_or(numbers[i]) != numbers[i]) {
      source.fail(key, fmt::format("{} in all layers of a kind", *known),
                  fmt::format("{} in layer {}", numbers[i], i));
    }
    known = numbers[i];
  }
  return known.value_or(otherwise);
}

void read_heads(const ConfigSource& source, Gemma4Config& config) {
  constexpr ConfigKey kSameKeys = {"attention_k_eq_v", nullptr};
  constexpr ConfigKey kWholeHeads = {"num_global_key_value_heads", nullptr};
  constexpr ConfigKey kHeads = {nullptr, "attention.head_count_kv"};
  constexpr int kTransformers = 512;  // transformers' default
  ModelConfig& decoder = config.decoder;
  const int said =
      source.is_gguf()
          ? source.required_whole(kWholeHeadDim)
          : source.whole(kWholeHeadDim).value_or(source.has(kWholeHeadDim) ? 0 : kTransformers);
  decoder.whole_head_dim = said == 0 ? decoder.head_dim : said;
  if (source.is_gguf()) {
    const auto heads = source.of_layers(kHeads, decoder.n_layers);
    if (!heads) source.fail(kHeads, "there", "no such key");
    decoder.n_kv_heads = of_kind(source, kHeads, *heads, config.windows, false, decoder.n_kv_heads);
    decoder.whole_n_kv_heads =
        of_kind(source, kHeads, *heads, config.windows, true, decoder.n_kv_heads);
    require_same(source, {nullptr, "attention.value_length"}, decoder.whole_head_dim);
    require_same(source, {nullptr, "rope.dimension_count"}, decoder.whole_head_dim);
    require_same(source, {nullptr, "rope.dimension_count_swa"}, decoder.head_dim);
  } else {
    // transformers reads the number of heads only if values are keys.
    config.values_are_keys = source.flag(kSameKeys).value_or(false);
    const std::optional<int> heads = source.whole(kWholeHeads);
    if (config.values_are_keys && !heads) {
      source.fail(kWholeHeads, "a number where attention_k_eq_v is true", "none");
    }
    decoder.whole_n_kv_heads = config.values_are_keys ? *heads : decoder.n_kv_heads;
  }
}

void read_ropes(const ConfigSource& source, Gemma4Config& config) {
  constexpr RopeKeys kLocal = {.theta = {nullptr, "rope.freq_base_swa"},
                               .layer_type = "sliding_attention",
                               .may_be_scaled = false};
  constexpr RopeKeys kWhole = {.theta = {nullptr, "rope.freq_base"},
                               .layer_type = "full_attention",
                               .default_share = 0.25,
                               .default_theta = 1e6,
                               .proportional = true};
  ModelConfig& decoder = config.decoder;
  if (!source.is_gguf()) decoder.rotary_dim = source.rotary_dim(kLocal, decoder.head_dim);
  decoder.rope = source.rope(kLocal, decoder.head_dim);
  if (decoder.rope.scaling != RopeConfig::Scaling::none) {
    source.fail({"rope_parameters", "rope.scaling.type"},
                "default for sliding_attention (its RoPE is not scaled)", "a scaling");
  }
  config.whole = decoder;
  config.whole.n_kv_heads = decoder.whole_n_kv_heads;
  config.whole.head_dim = decoder.whole_head_dim;
  config.whole.rotary_dim = 0;
  config.whole.rope = {};
  check_config(config.whole, kReadConfig, source.description());
  config.whole.rope = source.rope(kWhole, config.whole.head_dim);
  check_config(config.whole, kReadConfig, source.description());
}

// The last layers read the keys of the last layer of their kind that stores its own.
void read_lenders(const ConfigSource& source, Gemma4Config& config) {
  ModelConfig& decoder = config.decoder;
  const int n_layers = decoder.n_layers;
  const int n_borrowing = source.whole(kBorrowing).value_or(0);
  require_range(source, kBorrowing, n_borrowing, 0, n_layers - 1);
  const int n_lenders = n_layers - n_borrowing;
  decoder.lenders.assign(static_cast<std::size_t>(n_layers), kOwnKeys);
  for (int i = n_lenders; i < n_layers; ++i) {
    const bool is_whole = config.windows[static_cast<std::size_t>(i)] == 0;
    int lender = n_lenders - 1;
    while (lender >= 0 && (config.windows[static_cast<std::size_t>(lender)] == 0) != is_whole) {
      --lender;
    }
    if (lender < 0) {
      source.fail(kBorrowing,
                  fmt::format("few enough that a layer of layer {}'s kind stands before", i),
                  fmt::format("{} of {}", n_borrowing, n_layers));
    }
    decoder.lenders[static_cast<std::size_t>(i)] = lender;
  }
}

void lend(const ConfigSource& source, const LentLayers& lent, Gemma4Config& config) {
  const int n_layers = config.decoder.n_layers;
  const int n_borrowing = source.whole(kBorrowing).value_or(0);
  if (n_borrowing != 0 && n_borrowing != n_layers) {
    source.fail(kBorrowing, fmt::format("all {} layers of an assistant", n_layers),
                fmt::format("{}", n_borrowing));
  }
  for (const int window : config.windows) {
    const int lender = window == 0 ? lent.whole : lent.windowed;
    if (lender < 0) {
      source.fail({"layer_types", "attention.sliding_window_pattern"},
                  "of kinds of which the target has a layer",
                  window == 0 ? "full_attention" : "sliding_attention");
    }
    config.decoder.lenders.push_back(lender);
  }
}

void read_hidden_dims(const ConfigSource& source, Gemma4Config& config) {
  constexpr ConfigKey kDouble = {"use_double_wide_mlp", nullptr};
  constexpr ConfigKey kWidths = {nullptr, "feed_forward_length"};
  constexpr int kMaxWidth = 1 << 22;  // as in check_config
  ModelConfig& decoder = config.decoder;
  if (source.is_gguf()) {
    auto widths = source.of_layers(kWidths, decoder.n_layers);
    if (!widths) source.fail(kWidths, "there", "no such key");
    for (const int width : *widths) require_range(source, kWidths, width, 1, kMaxWidth);
    config.hidden_dims = *std::move(widths);
    decoder.hidden_dim = config.hidden_dims.front();
    return;
  }
  const int factor = source.flag(kDouble).value_or(false) ? 2 : 1;
  for (const int lender : decoder.lenders) {
    config.hidden_dims.push_back(decoder.hidden_dim * (lender == kOwnKeys ? 1 : factor));
  }
}

// is_assistant: its layers never have any.
void read_layer_inputs(const ConfigSource& source, bool is_assistant, ModelConfig& decoder) {
  constexpr ConfigKey kWidth = {"hidden_size_per_layer_input", "embedding_length_per_layer_input"};
  constexpr ConfigKey kVocabulary = {"vocab_size_per_layer_input", nullptr};
  constexpr int kTransformers = 256;  // transformers' default
  decoder.layer_input_dim =
      source.whole(kWidth).value_or(source.is_gguf() || source.has(kWidth) ? 0 : kTransformers);
  require_range(source, kWidth, decoder.layer_input_dim, 0, is_assistant ? 0 : kMaxInputDim);
  const int n_tokens = source.whole(kVocabulary).value_or(decoder.vocabulary_size);
  if (decoder.layer_input_dim > 0 && n_tokens != decoder.vocabulary_size) {
    source.fail(kVocabulary, fmt::format("vocab_size, {}", decoder.vocabulary_size),
                fmt::format("{}", n_tokens));
  }
}

void read_mixture(const ConfigSource& source, ModelConfig& decoder) {
  constexpr ConfigKey kEnabled = {"enable_moe_block", nullptr};
  constexpr ConfigKey kCount = {"num_experts", "expert_count"};
  constexpr ConfigKey kUsed = {"top_k_experts", "expert_used_count"};
  constexpr ConfigKey kWidth = {"moe_intermediate_size", "expert_feed_forward_length"};
  const int n = source.whole(kCount).value_or(0);
  const int n_used = source.whole(kUsed).value_or(0);
  const int width = source.whole(kWidth).value_or(0);
  if (source.is_gguf() ? n == 0 : !source.flag(kEnabled).value_or(false)) return;
  require_range(source, kCount, n, 1, kMaxExperts);
  require_range(source, kUsed, n_used, 1, n);
  require_range(source, kWidth, width, 1, 1 << 22);
  decoder.n_experts = n;
  decoder.n_experts_used = n_used;
  decoder.expert_dim = width;
  decoder.n_expert_layers = decoder.n_layers;
}

// Refuses keys of models that compute something else. "vision" concerns only image tokens.
void require_causal(const ConfigSource& source) {
  constexpr ConfigKey kBias = {"attention_bias", nullptr};
  constexpr ConfigKey kBothWays = {"use_bidirectional_attention", nullptr};
  if (source.flag(kBias).value_or(false)) source.fail(kBias, "false", "true");
  const std::string both_ways = source.text(kBothWays).value_or("vision");
  if (both_ways != "vision") source.fail(kBothWays, "null or vision", both_ways);
}

// Refuses what assistants never have.
void require_plain_layers(const ConfigSource& source, const Gemma4Config& config) {
  if (config.decoder.n_experts != 0) {
    source.fail({"enable_moe_block", "expert_count"},
                source.is_gguf() ? "0 in an assistant" : "false in an assistant",
                source.is_gguf() ? fmt::format("{}", config.decoder.n_experts) : "true");
  }
  if (config.hidden_dims.front() != config.decoder.hidden_dim) {
    source.fail({"use_double_wide_mlp", nullptr}, "false in an assistant", "true");
  }
}

// lent: the target's layers for an assistant; otherwise null.
Gemma4Config read_gemma4(const ConfigSource& source, const LentLayers* lent) {
  Gemma4Config config;
  config.decoder = read_decoder(source);
  require_causal(source);
  config.windows = read_windows(source, config.decoder.n_layers);
  read_heads(source, config);
  lent == nullptr ? read_lenders(source, config) : lend(source, *lent, config);
  read_hidden_dims(source, config);
  read_layer_inputs(source, lent != nullptr, config.decoder);
  read_mixture(source, config.decoder);
  read_ropes(source, config);
  config.logit_cap =
      read_soft_cap(source, {"final_logit_softcapping", "final_logit_softcapping"}, 0);
  check_config(config.decoder, kReadConfig, source.description());
  if (lent != nullptr) require_plain_layers(source, config);
  return config;
}

// Queries and keys are normalised, so transformers does not scale scores.
constexpr float kScoreScale = 1;

}  // namespace

Gemma4::Gemma4(const ConfigSource& source) : Gemma4(read_gemma4(source, nullptr)) {}

Gemma4::Gemma4(const ConfigSource& source, const LentLayers& lent)
    : Gemma4(read_gemma4(source, &lent)) {}

std::vector<RopeTable> Gemma4::ropes() const {
  return {rope_table(own_.whole), rope_table(config())};
}

float Gemma4::embedding_scale() const {
  return static_cast<float>(std::sqrt(static_cast<double>(config().dim)));
}

// The sum of both parts is divided by sqrt(2); here both parts are. The norm's input should be the
// product times 1 / sqrt(dim); instead, it reads the product, with an epsilon larger by dim.
LayerInputs Gemma4::load_layer_inputs(LayerLoader& from) const {
  const ModelConfig& config = this->config();
  const int width = config.layer_input_dim;
  if (width == 0) return {};
  const int all = config.n_layers * width;
  LayerInputs loaded;
  loaded.width = width;
  loaded.table = from.table({"model.embed_tokens_per_layer", "per_layer_token_embd"},
                            config.vocabulary_size, all);
  loaded.table_scale = static_cast<float>(std::sqrt(width / 2.0));
  loaded.projection = from.linear({"model.per_layer_model_projection", "per_layer_model_proj"}, all,
                                  config.dim, Bias::never);
  loaded.norm = load_norm(from, {"model.per_layer_projection_norm", "per_layer_proj_norm"}, width);
  for (float& weight : loaded.norm.weight) weight *= static_cast<float>(std::sqrt(0.5));
  loaded.norm.epsilon *= static_cast<float>(config.dim);
  return loaded;
}

Attention Gemma4::load_attention(LayerLoader& from, int layer) const {
  constexpr TensorName kKey = {"self_attn.k_proj", "attn_k"};
  constexpr TensorName kValue = {"self_attn.v_proj", "attn_v"};
  constexpr TensorName kKeyNorm = {"self_attn.k_norm", "attn_k_norm"};
  const auto place = static_cast<std::size_t>(layer);
  const bool is_whole = own_.windows[place] == 0;
  const ModelConfig& heads = is_whole ? own_.whole : config();
  const int dim = config().dim;
  const int n_queries = heads.n_heads * heads.head_dim;
  const int n_keys = heads.n_kv_heads * heads.head_dim;
  Attention loaded = attention_of(heads);
  loaded.scale = kScoreScale;
  loaded.window = own_.windows[place];
  loaded.rope = is_whole ? kWhole : kLocal;
  loaded.reads_layer = config().lenders[place];
  loaded.query = from.linear({"self_attn.q_proj", "attn_q"}, n_queries, dim, Bias::never);
  loaded.query_norm = load_norm(from, {"self_attn.q_norm", "attn_q_norm"}, heads.head_dim);
  loaded.output = from.linear({"self_attn.o_proj", "attn_output"}, dim, n_queries, Bias::never);
  if (!loaded.has_own_keys()) {
    // Published files have them anyway, unused.
    for (const TensorName& name : {kKey, kValue, kKeyNorm}) from.ignore(name);
    return loaded;
  }
  loaded.key = from.linear(kKey, n_keys, dim, Bias::never);
  // GGUF files say it by omitting the matrix.
  const bool are_keys = is_whole && (from.is_gguf() ? !from.has(kValue) : own_.values_are_keys);
  if (!are_keys) loaded.value = from.linear(kValue, n_keys, dim, Bias::never);
  loaded.key_norm = load_norm(from, kKeyNorm, heads.head_dim);
  loaded.value_norm = {.weight = std::vector<float>(static_cast<std::size_t>(heads.head_dim), 1.0F),
                       .epsilon = config().norm_epsilon};
  return loaded;
}

// Experts are beside the MLP. They and their router read the stream after attention, each through a
// norm of its own. The file stores the router norm's weight without the factor 1 / sqrt(dim).
void Gemma4::load_experts(LayerLoader& from, DecoderLayer& layer) const {
  const ModelConfig& config = this->config();
  const int dim = config.dim;
  layer.experts = load_stacked_experts(from, config, ExpertWeights::softmax_used,
                                       {.router = "router.proj",
                                        .gate_and_up = "experts.gate_up_proj",
                                        .down = "experts.down_proj"});
  layer.experts.activation = Activation::gelu_tanh;
  layer.experts.scales =
      from.plain_vector({"router.per_expert_scale", "ffn_down_exps.scale"}, config.n_experts);
  layer.before_router = {.weight = from.plain_vector({"router.scale", "ffn_gate_inp.scale"}, dim),
                         .epsilon = config.norm_epsilon};
  const auto root = static_cast<float>(1 / std::sqrt(static_cast<double>(dim)));
  for (float& weight : layer.before_router.weight) weight *= root;
  layer.before_experts = load_norm(from, {"pre_feedforward_layernorm_2", "pre_ffw_norm_2"}, dim);
  layer.after_dense = load_norm(from, {"post_feedforward_layernorm_1", "post_ffw_norm_1"}, dim);
  layer.after_experts = load_norm(from, {"post_feedforward_layernorm_2", "post_ffw_norm_2"}, dim);
}

DecoderLayer Gemma4::load_layer(LayerLoader& from, int layer) const {
  const ModelConfig& config = this->config();
  const int dim = config.dim;
  const int hidden_dim = own_.hidden_dims[static_cast<std::size_t>(layer)];
  DecoderLayer loaded;
  loaded.before_attention = load_norm(from, {"input_layernorm", "attn_norm"}, dim);
  loaded.attention = load_attention(from, layer);
  loaded.after_attention =
      load_norm(from, {"post_attention_layernorm", "post_attention_norm"}, dim);
  loaded.before_mlp = load_norm(from, {"pre_feedforward_layernorm", "ffn_norm"}, dim);
  loaded.mlp.activation = Activation::gelu_tanh;
  loaded.mlp.gate = from.linear({"mlp.gate_proj", "ffn_gate"}, hidden_dim, dim, Bias::never);
  loaded.mlp.up = from.linear({"mlp.up_proj", "ffn_up"}, hidden_dim, dim, Bias::never);
  loaded.mlp.down = from.linear({"mlp.down_proj", "ffn_down"}, dim, hidden_dim, Bias::never);
  loaded.after_mlp = load_norm(from, {"post_feedforward_layernorm", "post_ffw_norm"}, dim);
  if (config.n_experts > 0) load_experts(from, loaded);
  if (const int width = config.layer_input_dim; width > 0) {
    loaded.input.gate = from.linear({"per_layer_input_gate", "inp_gate"}, width, dim, Bias::never);
    loaded.input.output = from.linear({"per_layer_projection", "proj"}, dim, width, Bias::never);
    loaded.input.after = load_norm(from, {"post_per_layer_input_norm", "post_norm"}, dim);
  }
  // No suffix in directories. Files without it scale by 1.
  constexpr TensorName kScale = {"layer_scalar", "layer_output_scale.weight"};
  if (from.has(kScale, "")) {
    const std::vector<float> scale = from.plain_vector(kScale, 1);
    if (!scale.empty()) loaded.stream_scale = scale.front();
  }
  return loaded;
}

void Gemma4::compose(PassBuilder& pass, const DecoderLayer& layer) const {
  Rows h = pass.attention(pass.norm(pass.stream(), layer.before_attention), layer.attention);
  pass.add(pass.norm(h, layer.after_attention));
  h = pass.gated_mlp(pass.norm(pass.stream(), layer.before_mlp), layer.mlp);
  if (!layer.experts.empty()) {
    const Rows dense = pass.norm_aside(h, layer.after_dense);
    pass.route(pass.norm(pass.stream(), layer.before_router), layer.experts);
    h = pass.routed(pass.norm(pass.stream(), layer.before_experts), layer.experts);
    h = pass.norm(h, layer.after_experts);
    pass.add_to(dense, h);
    h = dense;
  }
  pass.add(pass.norm(h, layer.after_mlp));
  if (!layer.input.empty()) {
    pass.add(pass.norm(pass.layer_input(layer.input), layer.input.after));
  }
  pass.scale(layer.stream_scale);
}

}  // namespace outrider
