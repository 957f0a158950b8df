// SPDX-License-Identifier: Apache-2.0
#include "model/families/experts/olmoe.h"

namespace outrider {
namespace {

ModelConfig read_olmoe(const ConfigSource& source) {
  ModelConfig config = read_decoder_config(source, {.architecture = "olmoe"});
  config.attention_bias = source.has_bias("attention_bias", "blk.0.attn_q.bias");
  read_experts(source, {nullptr, "expert_feed_forward_length"}, config);
  return config;
}

}  // namespace

Olmoe::Olmoe(const ConfigSource& source)
    : Family(read_olmoe(source)), weights_(read_expert_weights(source, false)) {}

DecoderLayer Olmoe::load_layer(LayerLoader& from, int) const {
  const ModelConfig& config = this->config();
  DecoderLayer loaded = load_llama_layer(from, config, {.mlp = false});
  Attention& attention = loaded.attention;
  attention.norms_all_heads = true;
  attention.query_norm =
      load_norm(from, {"self_attn.q_norm", "attn_q_norm"}, config.n_heads * config.head_dim);
  attention.key_norm =
      load_norm(from, {"self_attn.k_norm", "attn_k_norm"}, config.n_kv_heads * config.head_dim);
  loaded.experts =
      load_experts(from, config, weights_,
                   {.block = "mlp.", .gate = "gate_proj", .up = "up_proj", .down = "down_proj"});
  return loaded;
}

}  // namespace outrider
