// SPDX-License-Identifier: Apache-2.0
#include "model/families/qwen3.h"

#include "model/families/qwen2.h"

namespace outrider {
namespace {

ModelConfig read_qwen3(const ConfigSource& source) {
  ModelConfig config = read_decoder_config(source, {.architecture = "qwen3"});
  config.attention_bias = source.has_bias("attention_bias", "blk.0.attn_q.bias");
  return config;
}

}  // namespace

Qwen3::Qwen3(const ConfigSource& source)
    : Family(read_qwen3(source)), windows_(read_qwen_windows(source, config().n_layers)) {}

DecoderLayer Qwen3::load_layer(LayerLoader& from, int layer) const {
  DecoderLayer loaded = load_llama_layer(from, config());
  loaded.attention.window = windows_[static_cast<std::size_t>(layer)];
  loaded.attention.query_norm =
      load_norm(from, {"self_attn.q_norm", "attn_q_norm"}, config().head_dim);
  loaded.attention.key_norm =
      load_norm(from, {"self_attn.k_norm", "attn_k_norm"}, config().head_dim);
  return loaded;
}

}  // namespace outrider
