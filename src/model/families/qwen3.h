// SPDX-License-Identifier: Apache-2.0
// Qwen3, dense (Yang et al. 2025): a Llama with a norm of every query and key head before RoPE.
#ifndef OUTRIDER_MODEL_FAMILIES_QWEN3_H_
#define OUTRIDER_MODEL_FAMILIES_QWEN3_H_

#include "model/families/llama.h"

namespace outrider {

class Qwen3 final : public Family {
 public:
  explicit Qwen3(const ConfigSource& source);
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override {
    compose_pre_norm(pass, layer);
  }

 private:
  std::vector<int> windows_;  // (n_layers) tokens; 0: all
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_QWEN3_H_
