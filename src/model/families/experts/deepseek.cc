// SPDX-License-Identifier: Apache-2.0
#include "model/families/experts/deepseek.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "base/elementary.h"
#include "model/load/modules_behind.h"
#include "model/load/read_size.h"

namespace outrider {
namespace {

// The epsilon of the norms of latents and of low-rank queries, whatever rms_norm_eps says: that of
// the models' own code, and of transformers.
constexpr float kLatentEpsilon = 1e-6F;
// Far above any model's; no width overflows within it.
constexpr int kMaxWidth = 1 << 12;
constexpr int kMaxQueryRank = 1 << 20;  // as for dim

constexpr ConfigKey kRopeDim = {"qk_rope_head_dim", "rope.dimension_count"};
constexpr ConfigKey kLatentDim = {"kv_lora_rank", "attention.kv_lora_rank"};

// Widths of heads. GGUF files give the latent key's width as the head's, and the heads' own under
// other keys. Old ones, which store kv_b as one matrix, give only the heads' own.
void read_heads_of_gguf(const ConfigSource& source, DeepSeekConfig& config, int rope_dim) {
  constexpr ConfigKey kKey = {nullptr, "attention.key_length"};
  constexpr ConfigKey kValue = {nullptr, "attention.value_length"};
  constexpr ConfigKey kHead = {nullptr, "attention.key_length_mla"};
  constexpr ConfigKey kHeadValue = {nullptr, "attention.value_length_mla"};
  const bool is_new = source.has(kHead);
  const int latent_dim = config.decoder.latent_dim;
  const auto require = [&](const ConfigKey& key, int right) {
    const int said = source.required_whole(key);
    if (said != right) source.fail(key, fmt::format("{}", right), fmt::format("{}", said));
  };
  if (is_new) {
    require(kKey, latent_dim + rope_dim);
    require(kValue, latent_dim);
  }
  const ConfigKey& head = is_new ? kHead : kKey;
  const int head_dim = source.required_whole(head);
  require_range(source, head, head_dim, rope_dim + 1, kMaxWidth);
  config.plain_dim = head_dim - rope_dim;
  const ConfigKey& value = is_new ? kHeadValue : kValue;
  config.value_dim = source.required_whole(value);
  require_range(source, value, config.value_dim, 1, kMaxWidth);
}

void read_heads(const ConfigSource& source, DeepSeekConfig& config) {
  constexpr ConfigKey kPlain = {"qk_nope_head_dim", nullptr};
  constexpr ConfigKey kValue = {"v_head_dim", nullptr};
  constexpr ConfigKey kQueryRank = {"q_lora_rank", "attention.q_lora_rank"};
  ModelConfig& decoder = config.decoder;
  const int rope_dim = decoder.head_dim;
  decoder.latent_dim = source.required_whole(kLatentDim);
  require_range(source, kLatentDim, decoder.latent_dim, 1, kMaxWidth - rope_dim);
  config.query_rank = source.whole(kQueryRank).value_or(0);
  require_range(source, kQueryRank, config.query_rank, 0, kMaxQueryRank);
  if (source.is_gguf()) {
    read_heads_of_gguf(source, config, rope_dim);
  } else {
    config.plain_dim = source.required_whole(kPlain);
    require_range(source, kPlain, config.plain_dim, 1, kMaxWidth - rope_dim);
    config.value_dim = source.required_whole(kValue);
    require_range(source, kValue, config.value_dim, 1, kMaxWidth);
    // transformers writes them as well.
    (void)source.whole({"head_dim", nullptr});
    constexpr ConfigKey kWhole = {"qk_head_dim", nullptr};
    const int whole = source.whole(kWhole).value_or(config.plain_dim + rope_dim);
    if (whole != config.plain_dim + rope_dim) {
      source.fail(kWhole, fmt::format("{}", config.plain_dim + rope_dim), fmt::format("{}", whole));
    }
  }
  decoder.head_dim = config.plain_dim + rope_dim;
  decoder.rotary_dim = rope_dim;
  decoder.n_kv_heads = 1;
}

// For YaRN, the square of 1 + w log(factor) / 10 with w = mscale_all_dim, as in the models' own
// code, also for V2 (transformers omits it there). The magnitude of rotated parts is the quotient
// of two such factors. GGUF stores w / 10 but not the quotient, which is 1 in all published files.
float read_score_scale(const ConfigSource& source, ModelConfig& config) {
  constexpr ConfigKey kWeight = {nullptr, "rope.scaling.yarn_log_multiplier"};
  constexpr ConfigKey kFactor = {nullptr, "rope.scaling.attn_factor"};
  RopeConfig& rope = config.rope;
  double weight = rope.weight_of_all;
  if (source.is_gguf()) {
    weight = 10 * source.real(kWeight).value_or(0);
    if (const double factor = source.real(kFactor).value_or(1); factor != 1) {
      source.fail(kFactor, "1", fmt::format("{}", factor));
    }
  }
  if (!(weight >= 0 && weight <= 100)) {  // far beyond any real one
    source.fail(source.is_gguf() ? kWeight : ConfigKey{"mscale_all_dim", nullptr}, "0 to 100",
                fmt::format("{}", weight));
  }
  weight = double{static_cast<float>(weight)};  // GGUF's value times 10 has wrong last bits
  double factor = 1;
  if (rope.scaling == RopeConfig::Scaling::yarn) {
    if (!source.is_gguf()) rope.magnitude = static_cast<float>(rope.attention_factor);
    rope.attention_factor = 1;
    if (rope.factor > 1) factor = 0.1 * weight * portable_log(rope.factor) + 1;
  }
  return static_cast<float>(factor * factor / std::sqrt(static_cast<double>(config.head_dim)));
}

// DeepSeek-V2 (160 experts) and V3 (256) have eight groups. V2-Lite and Moonlight (64), Kimi K2
// (384) and GLM-4.7-Flash (64), whose GGUF files have this architecture, have none.
void warn_of_missing_groups(const ConfigSource& source, ModelConfig& decoder) {
  const bool is_grouped = decoder.n_experts == 160 || decoder.n_experts == 256;
  if (!is_grouped || source.has({nullptr, "expert_group_count"})) return;
  decoder.warnings.push_back(fmt::format(
      "{}: no deepseek2.expert_group_count: experts are chosen among all {}, as llama.cpp does "
      "with such a file; the published models of this size choose groups first",
      source.description(), decoder.n_experts));
}

// Keys about training and about where experts run.
void read_other_keys(const ConfigSource& source, bool is_v3) {
  constexpr ConfigKey kEvery = {"moe_layer_freq", nullptr};
  if (const int every = source.whole(kEvery).value_or(1); every != 1) {
    source.fail(kEvery, "1", fmt::format("{}", every));
  }
  require_off(source, "attention_bias");
  if (!is_v3) require_off(source, "mlp_bias");
  constexpr ConfigKey kPairs = {"rope_interleave", nullptr};
  if (is_v3 && !source.flag(kPairs).value_or(true)) source.fail(kPairs, "true", "false");
  (void)source.real({"aux_loss_alpha", nullptr});
  (void)source.flag({"seq_aux", nullptr});
  (void)source.whole({"ep_size", nullptr});
}

DeepSeekConfig read_deepseek(const ConfigSource& source, const RoutedForm& form) {
  DecoderKeys keys;
  keys.head_dim = kRopeDim;
  keys.value_dim = {nullptr, nullptr};
  (void)source.required_whole(kRopeDim);
  DeepSeekConfig config;
  config.decoder = read_decoder_config(source, {.architecture = "deepseek", .keys = keys});
  config.decoder.n_layers -= read_n_modules_behind(source);
  const int n_kv_heads = config.decoder.n_kv_heads;
  if (n_kv_heads != config.decoder.n_heads && !(source.is_gguf() && n_kv_heads == 1)) {
    source.fail(keys.n_kv_heads, fmt::format("all heads, {}", config.decoder.n_heads),
                fmt::format("{}", n_kv_heads));
  }
  read_heads(source, config);
  config.score_scale = read_score_scale(source, config.decoder);
  config.routed = read_routed(source, form, config.decoder);
  if (source.is_gguf()) {
    warn_of_missing_groups(source, config.decoder);
  } else {
    read_other_keys(source, form.by_sigmoid);
  }
  return config;
}

Norm latent_norm(const LayerLoader& from, const TensorName& name, int width) {
  return {.weight = from.vector(name, width), .epsilon = kLatentEpsilon};
}

}  // namespace

LatentAttention DeepSeek::load_attention(LayerLoader& from) const {
  const int dim = config().dim;
  const int n_heads = config().n_heads;
  LatentAttention loaded;
  loaded.plain_dim = own_.plain_dim;
  loaded.rope_dim = config().rotary_dim;
  loaded.latent_dim = config().latent_dim;
  loaded.value_dim = own_.value_dim;
  Attention& attention = loaded.attention;
  attention.n_heads = n_heads;
  attention.n_kv_heads = 1;
  attention.head_dim = loaded.latent_dim + loaded.rope_dim;
  attention.scale = own_.score_scale;
  attention.values_in_keys = loaded.latent_dim;
  const int n_queries = n_heads * config().head_dim;
  if (own_.query_rank > 0) {
    loaded.query_down =
        from.linear({"self_attn.q_a_proj", "attn_q_a"}, own_.query_rank, dim, Bias::never);
    loaded.query_norm =
        latent_norm(from, {"self_attn.q_a_layernorm", "attn_q_a_norm"}, own_.query_rank);
    attention.query =
        from.linear({"self_attn.q_b_proj", "attn_q_b"}, n_queries, own_.query_rank, Bias::never);
  } else {
    attention.query = from.linear({"self_attn.q_proj", "attn_q"}, n_queries, dim, Bias::never);
  }
  loaded.down = from.linear({"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"}, attention.head_dim,
                            dim, Bias::never);
  loaded.latent_norm =
      latent_norm(from, {"self_attn.kv_a_layernorm", "attn_kv_a_norm"}, loaded.latent_dim);
  attention.output = from.linear({"self_attn.o_proj", "attn_output"}, dim,
                                 n_heads * loaded.value_dim, Bias::never);
  constexpr TensorName kKeyUp = {nullptr, "attn_k_b"};
  constexpr TensorName kValueUp = {nullptr, "attn_v_b"};
  constexpr TensorName kBoth = {"self_attn.kv_b_proj", "attn_kv_b"};
  if (from.is_gguf() && from.has(kKeyUp)) {
    loaded.key_up = from.stacked_heads(kKeyUp, n_heads, loaded.latent_dim, loaded.plain_dim);
    loaded.value_up = from.stacked_heads(kValueUp, n_heads, loaded.value_dim, loaded.latent_dim);
    return loaded;
  }
  HeadRows rows = {.n = n_heads,
                   .n_stored = loaded.plain_dim + loaded.value_dim,
                   .first = 0,
                   .n_rows = loaded.plain_dim,
                   .transposed = true};
  loaded.key_up = from.parts_of_heads(kBoth, loaded.latent_dim, rows);
  rows.first = loaded.plain_dim;
  rows.n_rows = loaded.value_dim;
  rows.transposed = false;
  loaded.value_up = from.parts_of_heads(kBoth, loaded.latent_dim, rows);
  return loaded;
}

DecoderLayer DeepSeek::load_layer(LayerLoader& from, int layer) const {
  DecoderLayer loaded;
  loaded.before_attention = load_norm(from, {"input_layernorm", "attn_norm"}, config().dim);
  loaded.latent = load_attention(from);
  loaded.before_mlp = load_norm(from, {"post_attention_layernorm", "ffn_norm"}, config().dim);
  load_routed(from, config(), own_.routed, layer, loaded);
  return loaded;
}

void DeepSeek::compose(PassBuilder& pass, const DecoderLayer& layer) const {
  const Rows read = pass.norm(pass.stream(), layer.before_attention);
  pass.add(pass.latent_attention(read, layer.latent));
  add_routed(pass, pass.norm(pass.stream(), layer.before_mlp), layer);
}

DeepSeek::DeepSeek(const ConfigSource& source, const RoutedForm& form)
    : DeepSeek(read_deepseek(source, form)) {}

DeepSeekV2::DeepSeekV2(const ConfigSource& source)
    : DeepSeek(source, {.by_sigmoid = false, .n_dense = 0, .n_shared = 2}) {}

DeepSeekV3::DeepSeekV3(const ConfigSource& source)
    : DeepSeek(source, {.n_dense = 3, .scale = 2.5, .n_groups = 8, .n_groups_used = 4}) {}

}  // namespace outrider
