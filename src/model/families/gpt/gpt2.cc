// SPDX-License-Identifier: Apache-2.0
#include "model/families/gpt/gpt2.h"

#include <cmath>

#include "model/families/llama.h"
#include "model/load/activation.h"

namespace outrider {
namespace {

ModelConfig read_gpt2(const ConfigSource& source) {
  ModelConfig config = read_decoder_config(
      source, {.architecture = "gpt2",
               .keys = {.context_length = {"n_positions", "context_length"},
                        .n_layers = {"n_layer", "block_count"},
                        .dim = {"n_embd", "embedding_length"},
                        .n_heads = {"n_head", "attention.head_count"},
                        .n_kv_heads = {nullptr, "attention.head_count_kv"},
                        .head_dim = {nullptr, "attention.key_length"},
                        .hidden_dim = {"n_inner", "feed_forward_length"},
                        .norm_epsilon = {"layer_norm_epsilon", "attention.layer_norm_epsilon"}},
               .activation = nullptr,
               .widening = 4,
               .tied_head = true,
               .has_rope = false});
  config.attention_bias = true;
  config.mlp_bias = true;
  // The table of positions has n_positions rows. The others are about rounding scores, which does
  // not matter in f32.
  (void)source.whole({"n_ctx", nullptr});
  (void)source.flag({"reorder_and_upcast_attn", nullptr});
  return config;
}

}  // namespace

void compose_pre_norm_plain(PassBuilder& pass, const DecoderLayer& layer) {
  pass.add(pass.attention(pass.norm(pass.stream(), layer.before_attention), layer.attention));
  pass.add(pass.plain_mlp(pass.norm(pass.stream(), layer.before_mlp), layer.plain_mlp));
}

Gpt2::Gpt2(const ConfigSource& source)
    : Family(read_gpt2(source)),
      activation_(read_activation(source, "activation_function", Activation::gelu_tanh)),
      scales_scores_(source.flag({"scale_attn_weights", nullptr}).value_or(true)),
      scales_by_layer_(source.flag({"scale_attn_by_inverse_layer_idx", nullptr}).value_or(false)) {}

DecoderNames Gpt2::names() const {
  return {.embedding = {"transformer.wte", "token_embd"},
          .positions = {"transformer.wpe", "position_embd"},
          .final_norm = {"transformer.ln_f", "output_norm"},
          .layers = {"transformer.h.", "blk."},
          .optional_prefix = "transformer."};
}

float Gpt2::score_scale(int layer) const {
  const double of_width =
      scales_scores_ ? 1 / std::sqrt(static_cast<double>(config().head_dim)) : 1;
  return static_cast<float>(scales_by_layer_ ? of_width / (layer + 1) : of_width);
}

// Hugging Face stores matrices as (in, out); the converter to GGUF transposes them.
DecoderLayer Gpt2::load_layer(LayerLoader& from, int layer) const {
  const ModelConfig& config = this->config();
  const int n_queries = config.n_heads * config.head_dim;
  const int n_keys = config.n_kv_heads * config.head_dim;
  const auto linear = [&](const TensorName& name, int n_columns, int k) {
    return from.linear_rows(name, n_columns, k, Bias::always, {.turned = !from.is_gguf()});
  };
  const auto part = [&](int first, int n) {
    return from.linear_rows({"attn.c_attn", "attn_qkv"}, n_queries + 2 * n_keys, config.dim,
                            Bias::always, {.first = first, .n = n, .turned = !from.is_gguf()});
  };
  DecoderLayer loaded;
  loaded.before_attention = load_norm(from, {"ln_1", "attn_norm"}, config.dim);
  Attention& attention = loaded.attention;
  attention = attention_of(config);
  attention.scale = score_scale(layer);
  attention.rope = kNoRope;
  attention.query = part(0, n_queries);
  attention.key = part(n_queries, n_keys);
  attention.value = part(n_queries + n_keys, n_keys);
  attention.output = linear({"attn.c_proj", "attn_output"}, config.dim, n_queries);
  loaded.before_mlp = load_norm(from, {"ln_2", "ffn_norm"}, config.dim);
  loaded.plain_mlp.activation = activation_;
  loaded.plain_mlp.up = linear({"mlp.c_fc", "ffn_up"}, config.hidden_dim, config.dim);
  loaded.plain_mlp.down = linear({"mlp.c_proj", "ffn_down"}, config.dim, config.hidden_dim);
  return loaded;
}

}  // namespace outrider
