// SPDX-License-Identifier: Apache-2.0
#include "model/families/recurrent/lfm2.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "model/config_section.h"
#include "model/load/attending_layers.h"

namespace outrider {
namespace {

// Files of the first release repeat some values under the names of the training code.
void require_repeated(const ConfigSource& source, const char* key, double expected) {
  const std::optional<double> value = source.real({key, nullptr});
  if (!value || *value == expected) return;
  source.fail({key, nullptr}, fmt::format("{}, as said elsewhere", expected),
              fmt::format("{}", *value));
}

// Keys of those files that would mean another model, and keys about initialisation.
void read_keys_of_training(const ConfigSource& source, const ModelConfig& config) {
  for (const char* key : {"block_dim", "conv_dim", "conv_dim_out"}) {
    require_repeated(source, key, config.dim);
  }
  require_repeated(source, "num_heads", config.n_heads);
  require_repeated(source, "theta", config.rope.theta);
  for (const char* key : {"block_use_swiglu", "use_pos_enc"}) {
    if (!source.flag({key, nullptr}).value_or(true)) source.fail({key, nullptr}, "true", "false");
  }
  for (const char* key : {"block_mlp_init_scale", "block_out_init_scale", "block_norm_eps"}) {
    (void)source.real({key, nullptr});
  }
  for (const char* key : {"block_use_xavier_init", "conv_use_xavier_init"}) {
    (void)source.flag({key, nullptr});
  }
}

// The file names the width of an MLP without a gate. It is adjusted so that three matrices have as
// many weights as two.
int read_hidden_dim(const ConfigSource& source, int named) {
  constexpr ConfigKey kAdjust = {"block_auto_adjust_ff_dim", nullptr};
  constexpr ConfigKey kFactor = {"block_ffn_dim_multiplier", nullptr};
  constexpr ConfigKey kMultiple = {"block_multiple_of", nullptr};
  constexpr int kMax = 1 << 22;  // check_config's bound
  if (const auto width = source.whole({"block_ff_dim", nullptr})) named = *width;
  const bool adjusts = source.flag(kAdjust).value_or(true);
  const double factor = source.real(kFactor).value_or(1);
  const int multiple = source.whole(kMultiple).value_or(256);
  if (multiple < 1 || multiple > kMax) {
    source.fail(kMultiple, fmt::format("1 to {}", kMax), fmt::format("{}", multiple));
  }
  if (!(factor > 0 && factor <= 1024)) {
    source.fail(kFactor, "above 0, at most 1024", fmt::format("{}", factor));
  }
  if (named < 1 || named > kMax || !adjusts || source.is_gguf()) return named;
  // Both products are rounded down, as in the models' own code. A factor of null means the first
  // product only.
  double width = std::floor(2.0 * named / 3);
  if (source.has(kFactor) && !source.real(kFactor)) return static_cast<int>(width);
  width = multiple * std::ceil(std::floor(factor * width) / multiple);
  return width <= kMax ? static_cast<int>(width) : 0;  // check_config refuses it
}

std::vector<bool> read_attends(const ConfigSource& source, int n_layers) {
  constexpr ConfigKey kIndices = {"full_attn_idxs", nullptr};
  if (source.is_gguf()) return read_attends_by_heads(source, n_layers);
  auto by_type = read_attends_by_type(source, "layer_types",
                                      {.attends = "full_attention", .recurrent = "conv"}, n_layers);
  const auto indices = source.wholes(kIndices);
  if (by_type) return *std::move(by_type);
  const auto n = static_cast<std::size_t>(n_layers);
  if (!indices) return std::vector<bool>(n, true);
  std::vector<bool> attends(n, false);
  for (const int index : *indices) {
    if (index < 0 || index >= n_layers) {
      source.fail(kIndices, fmt::format("0 to {}", n_layers - 1), fmt::format("{}", index));
    }
    attends[static_cast<std::size_t>(index)] = true;
  }
  return attends;
}

ModelConfig read_lfm2(const ConfigSource& source) {
  DecoderKeys keys;
  keys.n_kv_heads.gguf = nullptr;
  keys.norm_epsilon.hugging_face = "norm_eps";
  ModelConfig config = read_decoder_config(
      source,
      {.architecture = "lfm2", .keys = keys, .tied_head = true, .rope = {.default_theta = 1e6}});
  if (source.is_gguf()) config.n_kv_heads = read_heads_of_attending(source, config.n_heads);
  if (const auto tied = source.flag({"tie_embedding", nullptr})) config.tied_head = *tied;
  config.hidden_dim = read_hidden_dim(source, config.hidden_dim);
  read_keys_of_training(source, config);
  check_config(config, kReadConfig, source.description());
  return config;
}

int read_taps(const ConfigSource& source) {
  constexpr ConfigKey kTaps = {"conv_L_cache", "shortconv.l_cache"};
  const int n_taps =
      source.is_gguf() ? source.required_whole(kTaps) : source.whole(kTaps).value_or(3);
  if (n_taps < 2 || n_taps > kMaxTaps) {
    source.fail(kTaps, fmt::format("2 to {}", kMaxTaps), fmt::format("{}", n_taps));
  }
  return n_taps;
}

}  // namespace

Lfm2::Lfm2(const ConfigSource& source)
    : Family(read_lfm2(source)),
      attends_(read_attends(source, config().n_layers)),
      n_taps_(read_taps(source)),
      convolution_bias_(source.has_bias("conv_bias", "blk.0.shortconv.conv.bias")) {}

DecoderNames Lfm2::names() const {
  DecoderNames names;
  names.final_norm = {"model.embedding_norm", "token_embd_norm"};
  return names;
}

RecurrentLayers Lfm2::recurrent_layers() const {
  return {.n = static_cast<int>(std::count(attends_.begin(), attends_.end(), false)),
          .shape = shape_of_convolution(config().dim, n_taps_)};
}

ShortConvolution Lfm2::load_convolution(LayerLoader& from) const {
  constexpr TensorName kFilter = {"conv.conv", "shortconv.conv"};
  const int dim = config().dim;
  const Bias bias = convolution_bias_ ? Bias::always : Bias::never;
  ShortConvolution loaded;
  loaded.n_taps = n_taps_;
  loaded.weight = from.filter(kFilter, dim, n_taps_);
  if (convolution_bias_) loaded.bias = from.bias(kFilter, dim);
  loaded.input = from.linear({"conv.in_proj", "shortconv.in_proj"}, 3 * dim, dim, bias);
  loaded.output = from.linear({"conv.out_proj", "shortconv.out_proj"}, dim, dim, bias);
  return loaded;
}

Attention Lfm2::load_attention(LayerLoader& from) const {
  const ModelConfig& config = this->config();
  const int n_queries = config.n_heads * config.head_dim;
  const int n_keys = config.n_kv_heads * config.head_dim;
  Attention loaded = attention_of(config);
  loaded.query = from.linear({"self_attn.q_proj", "attn_q"}, n_queries, config.dim, Bias::never);
  loaded.key = from.linear({"self_attn.k_proj", "attn_k"}, n_keys, config.dim, Bias::never);
  loaded.value = from.linear({"self_attn.v_proj", "attn_v"}, n_keys, config.dim, Bias::never);
  loaded.output =
      from.linear({"self_attn.out_proj", "attn_output"}, config.dim, n_queries, Bias::never);
  loaded.query_norm = load_norm(from, {"self_attn.q_layernorm", "attn_q_norm"}, config.head_dim);
  loaded.key_norm = load_norm(from, {"self_attn.k_layernorm", "attn_k_norm"}, config.head_dim);
  return loaded;
}

DecoderLayer Lfm2::load_layer(LayerLoader& from, int layer) const {
  const int dim = config().dim;
  const int hidden = config().hidden_dim;
  DecoderLayer loaded;
  loaded.before_attention = load_norm(from, {"operator_norm", "attn_norm"}, dim);
  if (attends_[static_cast<std::size_t>(layer)]) {
    loaded.attention = load_attention(from);
  } else {
    loaded.convolution = load_convolution(from);
  }
  loaded.before_mlp = load_norm(from, {"ffn_norm", "ffn_norm"}, dim);
  loaded.mlp.gate = from.linear({"feed_forward.w1", "ffn_gate"}, hidden, dim, Bias::never);
  loaded.mlp.up = from.linear({"feed_forward.w3", "ffn_up"}, hidden, dim, Bias::never);
  loaded.mlp.down = from.linear({"feed_forward.w2", "ffn_down"}, dim, hidden, Bias::never);
  return loaded;
}

void Lfm2::compose(PassBuilder& pass, const DecoderLayer& layer) const {
  const Rows read = pass.norm(pass.stream(), layer.before_attention);
  pass.add(layer.convolution.n_taps > 0 ? pass.short_convolution(read, layer.convolution)
                                        : pass.attention(read, layer.attention));
  pass.add(pass.gated_mlp(pass.norm(pass.stream(), layer.before_mlp), layer.mlp));
}

}  // namespace outrider
