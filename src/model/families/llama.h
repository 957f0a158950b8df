// SPDX-License-Identifier: Apache-2.0
// The Llama family (Touvron et al. 2023; Dubey et al. 2024): pre-norm decoder with RMSNorm, RoPE,
// grouped-query attention and SwiGLU. Other pre-norm families and feature heads build on its layer.
#ifndef OUTRIDER_MODEL_FAMILIES_LLAMA_H_
#define OUTRIDER_MODEL_FAMILIES_LLAMA_H_

#include "model/families/family.h"
#include "model/load/config_source.h"

namespace outrider {

// How a layer's tensors differ from a Llama's.
struct LlamaLayerForm {
  bool attention_norm = true;
  bool mlp_norm = true;
  bool mlp = true;
  int attention_width = 0;   // inputs of query, key and value products; 0: dim
  bool interleaved = false;  // query and key rows of a rotated pair are adjacent
};

// 1 / sqrt(head_dim), times yarn's factor for rotated queries and keys.
float default_attention_scale(const ModelConfig& config);

// The heads of that configuration and the default scale, without products and norms.
Attention attention_of(const ModelConfig& config);

// Every layer except its norms of queries and keys.
DecoderLayer load_llama_layer(LayerLoader& from, const ModelConfig& config,
                              const LlamaLayerForm& form = {});

// x += attention(norm(x)); x += mlp(norm(x)), or the layer's experts instead of the MLP.
void compose_pre_norm(PassBuilder& pass, const DecoderLayer& layer);

// x += norm(attention(norm(x))); x += norm(mlp(norm(x))). The inner norms may be empty.
void compose_post_norm(PassBuilder& pass, const DecoderLayer& layer);

class Llama final : public Family {
 public:
  explicit Llama(const ConfigSource& source);
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override {
    compose_pre_norm(pass, layer);
  }
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_LLAMA_H_
