// SPDX-License-Identifier: Apache-2.0
// Phi-3, Phi-3.5, Phi-4 and Phi-4-mini (Abdin et al. 2024): a Llama whose query, key and value rows
// are stored as one matrix, and so are gate and up. RoPE may rotate a part of each head; models
// with long contexts use longrope.
#ifndef OUTRIDER_MODEL_FAMILIES_PHI3_H_
#define OUTRIDER_MODEL_FAMILIES_PHI3_H_

#include "model/families/llama.h"

namespace outrider {

class Phi3 final : public Family {
 public:
  explicit Phi3(const ConfigSource& source);
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override {
    compose_pre_norm(pass, layer);
  }

 private:
  int window_;  // tokens; 0: all
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_PHI3_H_
