// SPDX-License-Identifier: Apache-2.0
// GPT-NeoX and Pythia (Black et al., arXiv 2204.06745; Biderman et al., arXiv 2304.01373):
// LayerNorm, RoPE of a part of each head, a plain MLP, and both branches of a layer reading the
// same input.
#ifndef OUTRIDER_MODEL_FAMILIES_GPT_GPT_NEOX_H_
#define OUTRIDER_MODEL_FAMILIES_GPT_GPT_NEOX_H_

#include "model/families/family.h"
#include "model/load/config_source.h"

namespace outrider {

class GptNeoX final : public Family {
 public:
  explicit GptNeoX(const ConfigSource& source);
  DecoderNames names() const override;
  Norm load_norm(const LayerLoader& from, const TensorName& name, int width) const override {
    return from.layer_norm(name, width, config().norm_epsilon);
  }
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override;

 private:
  Activation activation_;
  bool is_parallel_;  // x += attention(norm(x)) + mlp(norm(x)); else sequentially
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_GPT_GPT_NEOX_H_
