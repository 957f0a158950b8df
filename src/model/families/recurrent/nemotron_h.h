// SPDX-License-Identifier: Apache-2.0
// Nemotron-H, Nemotron Nano 2 and Nemotron 3 (NVIDIA 2025, arXiv 2504.03624, 2508.14444): each
// layer is one block after one norm. The block is Mamba-2, attention without RoPE, an MLP of
// squared ReLUs, or a mixture of experts of that form.
#ifndef OUTRIDER_MODEL_FAMILIES_RECURRENT_NEMOTRON_H_H_
#define OUTRIDER_MODEL_FAMILIES_RECURRENT_NEMOTRON_H_H_

#include <utility>
#include <vector>

#include "model/families/experts/routed.h"
#include "model/families/family.h"
#include "model/families/recurrent/mamba.h"
#include "model/load/config_source.h"

namespace outrider {

// What these configurations add to ModelConfig.
struct NemotronHConfig {
  enum class Block { mamba, attention, mlp, experts };
  ModelConfig decoder;
  std::vector<Block> blocks;  // (n_layers)
  MambaForm mamba;
  RoutedConfig routed;  // if some layer has experts
  int latent_dim = 0;   // width of the experts' input; 0: the stream's
};

class NemotronH final : public Family {
 public:
  explicit NemotronH(const ConfigSource& source);
  std::vector<RopeTable> ropes() const override { return {}; }
  RecurrentLayers recurrent_layers() const override;
  DecoderNames names() const override;
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override;

 private:
  explicit NemotronH(NemotronHConfig config) : Family(config.decoder), own_(std::move(config)) {}
  Attention load_attention(LayerLoader& from) const;
  Experts load_experts(LayerLoader& from) const;

  NemotronHConfig own_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_RECURRENT_NEMOTRON_H_H_
