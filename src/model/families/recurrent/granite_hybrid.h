// SPDX-License-Identifier: Apache-2.0
// Granite 4 (IBM 2025): layers of Mamba-2 and of attention, with Granite's four multipliers;
// experts with an MLP that every row uses, or the MLP alone. Attention mostly has no RoPE.
#ifndef OUTRIDER_MODEL_FAMILIES_RECURRENT_GRANITE_HYBRID_H_
#define OUTRIDER_MODEL_FAMILIES_RECURRENT_GRANITE_HYBRID_H_

#include <vector>

#include "model/families/family.h"
#include "model/families/granite.h"
#include "model/families/recurrent/mamba.h"
#include "model/load/config_source.h"

namespace outrider {

class GraniteHybrid final : public Family {
 public:
  explicit GraniteHybrid(const ConfigSource& source);
  std::vector<RopeTable> ropes() const override;
  float embedding_scale() const override { return multipliers_.embedding; }
  LogitForm logit_form() const override { return {.scale = 1 / multipliers_.logits}; }
  RecurrentLayers recurrent_layers() const override;
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override;

 private:
  GatedMlp load_mlp(LayerLoader& from) const;

  std::vector<bool> attends_;  // (n_layers)
  bool has_rope_;
  GraniteMultipliers multipliers_;
  MambaForm form_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_RECURRENT_GRANITE_HYBRID_H_
