// SPDX-License-Identifier: Apache-2.0
// Mistral 7B and later (Jiang et al. 2023), NeMo and Small: a Llama whose layers may all have a
// window. The architecture of their GGUF files is llama.
#ifndef OUTRIDER_MODEL_FAMILIES_MISTRAL_H_
#define OUTRIDER_MODEL_FAMILIES_MISTRAL_H_

#include "model/families/llama.h"

namespace outrider {

class Mistral final : public Family {
 public:
  explicit Mistral(const ConfigSource& source);
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override {
    compose_pre_norm(pass, layer);
  }

 private:
  int window_;  // tokens; 0: all
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_MISTRAL_H_
