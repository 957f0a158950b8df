// SPDX-License-Identifier: Apache-2.0
// Ministral 3 (Mistral AI 2025): a Mistral whose queries are scaled with the logarithm of their
// position (Llama 4's scaling), besides yarn. GGUF files of the architecture "mistral3" also
// include Mistral Small 3's text part, which has neither.
#ifndef OUTRIDER_MODEL_FAMILIES_MINISTRAL3_H_
#define OUTRIDER_MODEL_FAMILIES_MINISTRAL3_H_

#include "model/families/llama.h"

namespace outrider {

class Ministral3 final : public Family {
 public:
  explicit Ministral3(const ConfigSource& source);
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override {
    compose_pre_norm(pass, layer);
  }

 private:
  int window_;  // tokens; 0: all
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_MINISTRAL3_H_
