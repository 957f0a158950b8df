// SPDX-License-Identifier: Apache-2.0
#include "model/families/olmo2.h"

namespace outrider {
namespace {

ModelConfig read_olmo2(const ConfigSource& source) {
  ModelConfig config = read_decoder_config(source, {.architecture = "olmo2"});
  config.attention_bias = source.has_bias("attention_bias", "blk.0.attn_q.bias");
  return config;
}

}  // namespace

Olmo2::Olmo2(const ConfigSource& source) : Family(read_olmo2(source)) {}

DecoderLayer Olmo2::load_layer(LayerLoader& from, int) const {
  const ModelConfig& config = this->config();
  DecoderLayer loaded =
      load_llama_layer(from, config, {.attention_norm = false, .mlp_norm = false});
  Attention& attention = loaded.attention;
  attention.norms_all_heads = true;
  attention.query_norm =
      load_norm(from, {"self_attn.q_norm", "attn_q_norm"}, config.n_heads * config.head_dim);
  attention.key_norm =
      load_norm(from, {"self_attn.k_norm", "attn_k_norm"}, config.n_kv_heads * config.head_dim);
  loaded.after_attention =
      load_norm(from, {"post_attention_layernorm", "post_attention_norm"}, config.dim);
  loaded.after_mlp = load_norm(from, {"post_feedforward_layernorm", "post_ffw_norm"}, config.dim);
  return loaded;
}

}  // namespace outrider
