// SPDX-License-Identifier: Apache-2.0
// SmolLM3 (Bakouch et al. 2025): a Llama in which some layers have no position embedding (NoPE,
// Yang et al., arXiv 2501.18795).
#ifndef OUTRIDER_MODEL_FAMILIES_SMOLLM3_H_
#define OUTRIDER_MODEL_FAMILIES_SMOLLM3_H_

#include <vector>

#include "model/families/llama.h"

namespace outrider {

class SmolLm3 final : public Family {
 public:
  explicit SmolLm3(const ConfigSource& source);
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override {
    compose_pre_norm(pass, layer);
  }

 private:
  std::vector<bool> turns_;   // (n_layers): whether the layer has RoPE
  std::vector<int> windows_;  // (n_layers) tokens; 0: all
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_SMOLLM3_H_
