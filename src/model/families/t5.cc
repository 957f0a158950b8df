// SPDX-License-Identifier: Apache-2.0
#include "model/families/t5.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "base/elementary.h"
#include "model/families/llama.h"

namespace outrider {
namespace {

// Distances are unbounded, but the table of biases is not: with 128 heads (T5 11B's) the encoder's
// takes 8 MB for this context.
constexpr int kContext_tokens = 8192;

ModelConfig read_t5(const ConfigSource& source) {
  constexpr ConfigKey kEncoderLayers = {"num_layers", "block_count"};
  constexpr ConfigKey kDecoderLayers = {"num_decoder_layers", "decoder_block_count"};
  ModelConfig config = read_decoder_config(
      source, {.architecture = "t5",
               .keys = {.context_length = {nullptr, nullptr},
                        .n_layers = source.whole(kDecoderLayers) ? kDecoderLayers : kEncoderLayers,
                        .dim = {"d_model", "embedding_length"},
                        .n_heads = {"num_heads", "attention.head_count"},
                        .n_kv_heads = {nullptr, "attention.head_count_kv"},
                        .head_dim = {"d_kv", "attention.key_length"},
                        .hidden_dim = {"d_ff", "feed_forward_length"},
                        .norm_epsilon = {"layer_norm_epsilon", "attention.layer_norm_rms_epsilon"}},
               .activation = nullptr,
               .context_length = kContext_tokens,
               .tied_head = true,
               .has_rope = false});
  config.n_encoder_layers = source.required_whole(kEncoderLayers);
  if (config.n_encoder_layers < 1 || config.n_encoder_layers > 1 << 12) {
    source.fail(kEncoderLayers, "1 to 4096", fmt::format("{}", config.n_encoder_layers));
  }
  if (config.n_kv_heads != config.n_heads) {
    source.fail({"num_heads", "attention.head_count_kv"}, fmt::format("{}", config.n_heads),
                fmt::format("{}", config.n_kv_heads));
  }
  constexpr ConfigKey kStart = {"decoder_start_token_id", "decoder_start_token_id"};
  const int pad = source.whole({"pad_token_id", nullptr}).value_or(0);
  config.start_token = source.start_token().value_or(pad);
  if (config.start_token < 0 || config.start_token >= config.vocabulary_size) {
    source.fail(kStart, fmt::format("0 to {}", config.vocabulary_size - 1),
                fmt::format("{}", config.start_token));
  }
  constexpr ConfigKey kHasEncoder = {"is_encoder_decoder", nullptr};
  if (!source.flag(kHasEncoder).value_or(true)) source.fail(kHasEncoder, "true", "false");
  // Keys about the length of training texts and about training; and GGUF's epsilon of norms that T5
  // lacks.
  (void)source.whole({"n_positions", "context_length"});
  (void)source.real({"dropout_rate", nullptr});
  (void)source.real({"initializer_factor", nullptr});
  (void)source.real({nullptr, "attention.layer_norm_epsilon"});
  return config;
}

// GGUF files do not say it; the gates' tensors are present or not.
bool read_is_gated(const ConfigSource& source) {
  if (source.is_gguf()) return source.has_bias(nullptr, "dec.blk.0.ffn_gate.weight");
  constexpr ConfigKey kForm = {"feed_forward_proj", nullptr};
  const std::string form = source.text(kForm).value_or("relu");
  if (form != "relu" && form != "gated-gelu") source.fail(kForm, "relu or gated-gelu", form);
  const bool is_gated = form == "gated-gelu";
  // The value that transformers derives from it and may also write.
  constexpr ConfigKey kActivation = {"dense_act_fn", nullptr};
  const std::string named = is_gated ? "gelu_new" : "relu";
  if (const std::string its = source.text(kActivation).value_or(named); its != named) {
    source.fail(kActivation, fmt::format("{}, as feed_forward_proj has it", named), its);
  }
  constexpr ConfigKey kGated = {"is_gated_act", nullptr};
  if (source.flag(kGated).value_or(is_gated) != is_gated) {
    source.fail(kGated, "what feed_forward_proj says", is_gated ? "false" : "true");
  }
  return is_gated;
}

// Files of transformers 5 have the key. In earlier ones, a tied output matrix is scaled.
bool read_scales_output(const ConfigSource& source) {
  const bool is_tied = source.is_gguf()
                           ? source.has_tied_head(true)
                           : source.flag({"tie_word_embeddings", nullptr}).value_or(true);
  return source.flag({"scale_decoder_outputs", nullptr}).value_or(is_tied);
}

RelativeBuckets read_buckets(const ConfigSource& source) {
  constexpr ConfigKey kBuckets = {"relative_attention_num_buckets",
                                  "attention.relative_buckets_count"};
  constexpr ConfigKey kDistance = {"relative_attention_max_distance", nullptr};
  RelativeBuckets buckets;
  buckets.n = source.whole(kBuckets).value_or(buckets.n);
  if (buckets.n < 4 || buckets.n > 1 << 12 || buckets.n % 2 != 0) {
    source.fail(kBuckets, "even, 4 to 4096", fmt::format("{}", buckets.n));
  }
  buckets.max_distance = source.whole(kDistance).value_or(buckets.max_distance);
  if (buckets.max_distance <= buckets.n / 2 || buckets.max_distance > 1 << 24) {
    source.fail(kDistance, fmt::format("above {}, half the buckets, at most 2^24", buckets.n / 2),
                fmt::format("{}", buckets.max_distance));
  }
  return buckets;
}

}  // namespace

// In f32, as in transformers: rounding decides at a bucket's boundary.
int bucket_of(int distance, const RelativeBuckets& buckets) {
  const int n = buckets.both_sides ? buckets.n / 2 : buckets.n;
  const int first = buckets.both_sides && distance > 0 ? n : 0;
  const int away = buckets.both_sides ? std::abs(distance) : std::max(-distance, 0);
  // The first buckets hold one distance each, the others are logarithmic.
  const int n_exact = n / 2;
  if (away < n_exact) return first + away;
  const float ratio = static_cast<float>(away) / static_cast<float>(n_exact);
  const auto whole =
      static_cast<float>(portable_log(static_cast<double>(buckets.max_distance) / n_exact));
  const float share = static_cast<float>(portable_log(static_cast<double>(ratio))) / whole;
  const int beyond = static_cast<int>(share * static_cast<float>(n - n_exact));
  return first + std::min(n_exact + beyond, n - 1);
}

struct T5::AttentionNames {
  TensorName query, key, value, output;
};

struct T5::MlpNames {
  TensorName gate, gated, plain, down;
};

T5::T5(const ConfigSource& source)
    : Family(read_t5(source)),
      is_gated_(read_is_gated(source)),
      scales_output_(read_scales_output(source)),
      buckets_(read_buckets(source)) {}

LogitForm T5::logit_form() const {
  if (!scales_output_) return {};
  return {.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(config().dim)))};
}

DecoderNames T5::names() const {
  return {.embedding = {"shared", "token_embd"},
          .final_norm = {"decoder.final_layer_norm", "dec.output_norm"},
          .layers = {"decoder.block.", "dec.blk."},
          .encoder_layers = {"encoder.block.", "enc.blk."},
          .encoder_norm = {"encoder.final_layer_norm", "enc.output_norm"}};
}

Attention T5::load_attention(LayerLoader& from, const AttentionNames& names) const {
  const ModelConfig& config = this->config();
  const int width = config.n_heads * config.head_dim;
  Attention attention = attention_of(config);
  attention.scale = 1;
  attention.rope = kNoRope;
  attention.query = from.linear(names.query, width, config.dim, Bias::never);
  attention.key = from.linear(names.key, width, config.dim, Bias::never);
  attention.value = from.linear(names.value, width, config.dim, Bias::never);
  attention.output = from.linear(names.output, config.dim, width, Bias::never);
  return attention;
}

// Expands one number per bucket and head to all distances.
std::shared_ptr<const PositionBias> T5::load_position_bias(const LayerLoader& from,
                                                           bool both_sides) const {
  const int n_heads = config().n_heads;
  const std::vector<float> stored =
      from.stacked_vectors({"layer.0.SelfAttention.relative_attention_bias", "attn_rel_b"},
                           ".weight", buckets_.n, n_heads);
  auto bias = std::make_shared<PositionBias>();
  if (stored.empty()) return bias;  // in the first run, which only checks
  bias->first = 1 - config().context_length;
  bias->last = both_sides ? config().context_length - 1 : 0;
  RelativeBuckets buckets = buckets_;
  buckets.both_sides = both_sides;
  bias->values.reserve(static_cast<std::size_t>(n_heads) *
                       static_cast<std::size_t>(bias->n_distances()));
  for (int head = 0; head < n_heads; ++head) {
    for (int distance = bias->first; distance <= bias->last; ++distance) {
      const int at = bucket_of(distance, buckets) * n_heads + head;
      bias->values.push_back(stored[static_cast<std::size_t>(at)]);
    }
  }
  return bias;
}

void T5::load_mlp(LayerLoader& from, const MlpNames& names, DecoderLayer& layer) const {
  const int dim = config().dim;
  const int hidden_dim = config().hidden_dim;
  if (is_gated_) {
    layer.mlp.activation = Activation::gelu_tanh;
    layer.mlp.gate = from.linear(names.gate, hidden_dim, dim, Bias::never);
    layer.mlp.up = from.linear(names.gated, hidden_dim, dim, Bias::never);
    layer.mlp.down = from.linear(names.down, dim, hidden_dim, Bias::never);
  } else {
    layer.plain_mlp.activation = Activation::relu;
    layer.plain_mlp.up = from.linear(names.plain, hidden_dim, dim, Bias::never);
    layer.plain_mlp.down = from.linear(names.down, dim, hidden_dim, Bias::never);
  }
}

// A layer's first block. The first layer of a stack holds the biases.
DecoderLayer T5::load_self_attention(LayerLoader& from, int layer, bool is_encoder) const {
  DecoderLayer loaded;
  loaded.before_attention = load_norm(from, {"layer.0.layer_norm", "attn_norm"}, config().dim);
  loaded.attention = load_attention(from, {.query = {"layer.0.SelfAttention.q", "attn_q"},
                                           .key = {"layer.0.SelfAttention.k", "attn_k"},
                                           .value = {"layer.0.SelfAttention.v", "attn_v"},
                                           .output = {"layer.0.SelfAttention.o", "attn_o"}});
  if (layer == 0) loaded.attention.position_bias = load_position_bias(from, is_encoder);
  return loaded;
}

DecoderLayer T5::load_encoder_layer(LayerLoader& from, int layer) const {
  DecoderLayer loaded = load_self_attention(from, layer, true);
  loaded.attention.side = CacheSide::encoder;
  loaded.attention.reads_whole_block = true;
  loaded.before_mlp = load_norm(from, {"layer.1.layer_norm", "ffn_norm"}, config().dim);
  load_mlp(from,
           {.gate = {"layer.1.DenseReluDense.wi_0", "ffn_gate"},
            .gated = {"layer.1.DenseReluDense.wi_1", "ffn_up"},
            .plain = {"layer.1.DenseReluDense.wi", "ffn_up"},
            .down = {"layer.1.DenseReluDense.wo", "ffn_down"}},
           loaded);
  return loaded;
}

DecoderLayer T5::load_layer(LayerLoader& from, int layer) const {
  DecoderLayer loaded = load_self_attention(from, layer, false);
  loaded.before_cross = load_norm(from, {"layer.1.layer_norm", "cross_attn_norm"}, config().dim);
  loaded.cross = load_attention(from, {.query = {"layer.1.EncDecAttention.q", "cross_attn_q"},
                                       .key = {"layer.1.EncDecAttention.k", "cross_attn_k"},
                                       .value = {"layer.1.EncDecAttention.v", "cross_attn_v"},
                                       .output = {"layer.1.EncDecAttention.o", "cross_attn_o"}});
  loaded.cross.side = CacheSide::cross;
  // Without effect, in early files.
  from.ignore({"layer.1.EncDecAttention.relative_attention_bias", "cross_attn_rel_b"});
  loaded.before_mlp = load_norm(from, {"layer.2.layer_norm", "ffn_norm"}, config().dim);
  load_mlp(from,
           {.gate = {"layer.2.DenseReluDense.wi_0", "ffn_gate"},
            .gated = {"layer.2.DenseReluDense.wi_1", "ffn_up"},
            .plain = {"layer.2.DenseReluDense.wi", "ffn_up"},
            .down = {"layer.2.DenseReluDense.wo", "ffn_down"}},
           loaded);
  return loaded;
}

void T5::add_mlp(PassBuilder& pass, const DecoderLayer& layer) const {
  const Rows read = pass.norm(pass.stream(), layer.before_mlp);
  pass.add(is_gated_ ? pass.gated_mlp(read, layer.mlp) : pass.plain_mlp(read, layer.plain_mlp));
}

void T5::compose(PassBuilder& pass, const DecoderLayer& layer) const {
  pass.add(pass.attention(pass.norm(pass.stream(), layer.before_attention), layer.attention));
  pass.add(pass.cross_attention(pass.norm(pass.stream(), layer.before_cross), layer.cross));
  add_mlp(pass, layer);
}

void T5::compose_encoder(PassBuilder& pass, const DecoderLayer& layer) const {
  pass.add(pass.attention(pass.norm(pass.stream(), layer.before_attention), layer.attention));
  add_mlp(pass, layer);
}

}  // namespace outrider
