// SPDX-License-Identifier: Apache-2.0
// Mixtral (Jiang et al. 2024): a Mistral with experts; a row's weights are a softmax over the two
// that it uses. The architecture of its GGUF files is llama.
#ifndef OUTRIDER_MODEL_FAMILIES_EXPERTS_MIXTRAL_H_
#define OUTRIDER_MODEL_FAMILIES_EXPERTS_MIXTRAL_H_

#include "model/families/llama.h"
#include "model/load/expert_loader.h"

namespace outrider {

// Whether a file with a Llama's architecture is a Mixtral.
bool is_mixtral(const ConfigSource& source);

class Mixtral final : public Family {
 public:
  explicit Mixtral(const ConfigSource& source);
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override {
    compose_pre_norm(pass, layer);
  }

 private:
  int window_;  // tokens; 0: all
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_EXPERTS_MIXTRAL_H_
