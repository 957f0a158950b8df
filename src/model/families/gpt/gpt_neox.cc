// SPDX-License-Identifier: Apache-2.0
#include "model/families/gpt/gpt_neox.h"

#include <fmt/format.h>

#include "model/families/gpt/gpt2.h"
#include "model/families/llama.h"
#include "model/load/activation.h"

namespace outrider {
namespace {

ModelConfig read_gpt_neox(const ConfigSource& source) {
  ModelConfig config = read_decoder_config(
      source, {.architecture = "gpt_neox",
               .keys = {.n_kv_heads = {nullptr, "attention.head_count_kv"},
                        .head_dim = {nullptr, "attention.key_length"},
                        .norm_epsilon = {"layer_norm_eps", "attention.layer_norm_epsilon"}},
               .activation = nullptr,
               .rope = {.theta = {"rotary_emb_base", "rope.freq_base"},
                        .share = "rotary_pct",
                        .default_share = 0.25}});
  // Some releases of transformers wrote both names of the base.
  constexpr ConfigKey kOtherName = {"rope_theta", nullptr};
  const double theta = config.rope.theta;
  if (const double other = source.real(kOtherName).value_or(theta); other != theta) {
    source.fail(kOtherName, fmt::format("rotary_emb_base, {}", theta), fmt::format("{}", other));
  }
  config.attention_bias = source.is_gguf()
                              ? source.has_bias(nullptr, "blk.0.attn_qkv.bias")
                              : source.flag({"attention_bias", nullptr}).value_or(true);
  config.mlp_bias = true;
  return config;
}

// GGUF files do not say. The 20B model, recognised by its 44 layers, computes GELU by tanh; Pythia
// and the others of this architecture by erf. (llama.cpp uses tanh for all.)
Activation activation_without_name(const ConfigSource& source, const ModelConfig& config) {
  constexpr int kLayersOf20B = 44;
  return source.is_gguf() && config.n_layers == kLayersOf20B ? Activation::gelu_tanh
                                                             : Activation::gelu_erf;
}

}  // namespace

GptNeoX::GptNeoX(const ConfigSource& source)
    : Family(read_gpt_neox(source)),
      activation_(read_activation(source, "hidden_act", activation_without_name(source, config()))),
      is_parallel_(source.flag({"use_parallel_residual", "use_parallel_residual"}).value_or(true)) {
}

DecoderNames GptNeoX::names() const {
  return {.embedding = {"gpt_neox.embed_in", "token_embd"},
          .final_norm = {"gpt_neox.final_layer_norm", "output_norm"},
          .head = {"embed_out", "output"},
          .layers = {"gpt_neox.layers.", "blk."},
          .optional_prefix = "gpt_neox."};
}

DecoderLayer GptNeoX::load_layer(LayerLoader& from, int) const {
  const ModelConfig& config = this->config();
  const int head_dim = config.head_dim;
  const int n_queries = config.n_heads * head_dim;
  const int n_keys = config.n_kv_heads * head_dim;
  const Bias bias = config.attention_bias ? Bias::always : Bias::never;
  // Hugging Face interleaves each head's queries, keys and values; the converter to GGUF puts all
  // queries first, then all keys.
  const auto part = [&](int number, int first, int n) {
    const StoredRows rows =
        from.is_gguf()
            ? StoredRows{.first = first, .n = n}
            : StoredRows{
                  .first = number * head_dim, .n = n, .run = head_dim, .stride = 3 * head_dim};
    return from.linear_rows({"attention.query_key_value", "attn_qkv"}, n_queries + 2 * n_keys,
                            config.dim, bias, rows);
  };
  DecoderLayer loaded;
  loaded.before_attention = load_norm(from, {"input_layernorm", "attn_norm"}, config.dim);
  Attention& attention = loaded.attention;
  attention = attention_of(config);
  attention.query = part(0, 0, n_queries);
  attention.key = part(1, n_queries, n_keys);
  attention.value = part(2, n_queries + n_keys, n_keys);
  attention.output = from.linear({"attention.dense", "attn_output"}, config.dim, n_queries, bias);
  loaded.before_mlp = load_norm(from, {"post_attention_layernorm", "ffn_norm"}, config.dim);
  loaded.plain_mlp.activation = activation_;
  loaded.plain_mlp.up =
      from.linear({"mlp.dense_h_to_4h", "ffn_up"}, config.hidden_dim, config.dim, Bias::always);
  loaded.plain_mlp.down =
      from.linear({"mlp.dense_4h_to_h", "ffn_down"}, config.dim, config.hidden_dim, Bias::always);
  return loaded;
}

void GptNeoX::compose(PassBuilder& pass, const DecoderLayer& layer) const {
  if (!is_parallel_) return compose_pre_norm_plain(pass, layer);
  const Rows for_mlp = pass.norm_aside(layer.before_mlp);
  pass.add(pass.attention(pass.norm(pass.stream(), layer.before_attention), layer.attention));
  pass.add(pass.plain_mlp(for_mlp, layer.plain_mlp));
}

}  // namespace outrider
