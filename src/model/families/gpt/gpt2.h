// SPDX-License-Identifier: Apache-2.0
// GPT-2 (Radford et al. 2019): LayerNorm, learned positions, a plain MLP, biases everywhere.
#ifndef OUTRIDER_MODEL_FAMILIES_GPT_GPT2_H_
#define OUTRIDER_MODEL_FAMILIES_GPT_GPT2_H_

#include <vector>

#include "model/families/family.h"
#include "model/load/config_source.h"

namespace outrider {

// x += attention(norm(x)); x += mlp(norm(x)), for a layer with a plain MLP.
void compose_pre_norm_plain(PassBuilder& pass, const DecoderLayer& layer);

class Gpt2 final : public Family {
 public:
  explicit Gpt2(const ConfigSource& source);
  std::vector<RopeTable> ropes() const override { return {}; }
  DecoderNames names() const override;
  Norm load_norm(const LayerLoader& from, const TensorName& name, int width) const override {
    return from.layer_norm(name, width, config().norm_epsilon);
  }
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override {
    compose_pre_norm_plain(pass, layer);
  }

 private:
  float score_scale(int layer) const;

  Activation activation_;
  bool scales_scores_;    // by 1 / sqrt(head_dim)
  bool scales_by_layer_;  // and by 1 / (layer + 1)
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_GPT_GPT2_H_
