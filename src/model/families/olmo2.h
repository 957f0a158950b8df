// SPDX-License-Identifier: Apache-2.0
// OLMo 2 (OLMo team 2024): norms of the outputs of attention and the MLP instead of their inputs,
// and norms of all query and all key heads together before RoPE.
#ifndef OUTRIDER_MODEL_FAMILIES_OLMO2_H_
#define OUTRIDER_MODEL_FAMILIES_OLMO2_H_

#include "model/families/llama.h"

namespace outrider {

class Olmo2 final : public Family {
 public:
  explicit Olmo2(const ConfigSource& source);
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override {
    compose_post_norm(pass, layer);
  }
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_OLMO2_H_
