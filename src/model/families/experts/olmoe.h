// SPDX-License-Identifier: Apache-2.0
// OLMoE (Muennighoff et al. 2024): a Llama with experts, whose weights are a softmax over all of
// them, and norms of all query and all key heads together before RoPE.
#ifndef OUTRIDER_MODEL_FAMILIES_EXPERTS_OLMOE_H_
#define OUTRIDER_MODEL_FAMILIES_EXPERTS_OLMOE_H_

#include "model/families/llama.h"
#include "model/load/expert_loader.h"

namespace outrider {

class Olmoe final : public Family {
 public:
  explicit Olmoe(const ConfigSource& source);
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override {
    compose_pre_norm(pass, layer);
  }

 private:
  ExpertWeights weights_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_EXPERTS_OLMOE_H_
