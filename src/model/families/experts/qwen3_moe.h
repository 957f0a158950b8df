// SPDX-License-Identifier: Apache-2.0
// Qwen3's mixtures of experts (Yang et al. 2025): a Qwen3 in which some or all layers have experts.
#ifndef OUTRIDER_MODEL_FAMILIES_EXPERTS_QWEN3_MOE_H_
#define OUTRIDER_MODEL_FAMILIES_EXPERTS_QWEN3_MOE_H_

#include "model/families/llama.h"
#include "model/load/expert_loader.h"

namespace outrider {

// (n_layers): true for every layer whose number, from 1, is a multiple of decoder_sparse_step,
// except those in mlp_only_layers.
std::vector<bool> read_layers_with_experts(const ConfigSource& source, int n_layers);
// Sets the number of these layers; if it is 0, the model has no experts.
void note_expert_layers(const std::vector<bool>& has_experts, ModelConfig& config);

class Qwen3Moe final : public Family {
 public:
  explicit Qwen3Moe(const ConfigSource& source);
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override {
    compose_pre_norm(pass, layer);
  }

 private:
  std::vector<int> windows_;  // (n_layers) tokens; 0: all
  ExpertWeights weights_;
  std::vector<bool> has_experts_;  // (n_layers)
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_EXPERTS_QWEN3_MOE_H_
