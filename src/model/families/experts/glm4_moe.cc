// SPDX-License-Identifier: Apache-2.0
#include "model/families/experts/glm4_moe.h"

#include "model/families/llama.h"
#include "model/load/modules_behind.h"

namespace outrider {
namespace {

Glm4MoeConfig read_glm(const ConfigSource& source) {
  Glm4MoeConfig config;
  ModelConfig& decoder = config.decoder;
  decoder = read_decoder_config(source,
                                {.architecture = "glm4_moe",
                                 .rope = {.share = "partial_rotary_factor", .default_share = 0.5}});
  decoder.n_layers -= read_n_modules_behind(source);
  decoder.attention_bias = source.has_bias("attention_bias", "blk.0.attn_q.bias");
  config.has_head_norms = source.flag({"use_qk_norm", nullptr}).value_or(false);
  config.routed = read_routed(source, {.by_sigmoid_in_gguf = true}, decoder);
  return config;
}

}  // namespace

Glm4Moe::Glm4Moe(const ConfigSource& source) : Glm4Moe(read_glm(source)) {}

DecoderLayer Glm4Moe::load_layer(LayerLoader& from, int layer) const {
  constexpr TensorName kQueryNorm = {"self_attn.q_norm", "attn_q_norm"};
  DecoderLayer loaded = load_llama_layer(from, config(), {.mlp_norm = false, .mlp = false});
  if (from.is_gguf() ? from.has(kQueryNorm) : own_.has_head_norms) {
    loaded.attention.query_norm = load_norm(from, kQueryNorm, config().head_dim);
    loaded.attention.key_norm =
        load_norm(from, {"self_attn.k_norm", "attn_k_norm"}, config().head_dim);
  }
  loaded.before_mlp =
      load_norm(from, {"post_attention_layernorm", "post_attention_norm"}, config().dim);
  load_routed(from, config(), own_.routed, layer, loaded);
  return loaded;
}

void Glm4Moe::compose(PassBuilder& pass, const DecoderLayer& layer) const {
  const Rows read = pass.norm(pass.stream(), layer.before_attention);
  pass.add(pass.attention(read, layer.attention));
  add_routed(pass, pass.norm(pass.stream(), layer.before_mlp), layer);
}

Glm4MoeLite::Glm4MoeLite(const ConfigSource& source)
    : DeepSeek(source, {.scale = 1.8, .has_layer_list = true}) {}

}  // namespace outrider
