// SPDX-License-Identifier: Apache-2.0
// Granite 3 and 4, dense (IBM 2024): a Llama with four multipliers, for embeddings, scores,
// residual branches and logits.
#ifndef OUTRIDER_MODEL_FAMILIES_GRANITE_H_
#define OUTRIDER_MODEL_FAMILIES_GRANITE_H_

#include <vector>

#include "model/families/llama.h"

namespace outrider {

struct GraniteMultipliers {
  float embedding = 1;
  float scores = 1;    // of queries and keys
  float residual = 1;  // of residual branches
  float logits = 1;    // divides them
};
// Throws Error on numbers out of bounds. config: from the same source.
GraniteMultipliers read_granite_multipliers(const ConfigSource& source, const ModelConfig& config);

// Whether a GGUF file of Granite has RoPE; the file says it under the name of another switch.
bool granite_gguf_has_rope(const ConfigSource& source);

class Granite final : public Family {
 public:
  explicit Granite(const ConfigSource& source);
  float embedding_scale() const override { return multipliers_.embedding; }
  LogitForm logit_form() const override { return {.scale = 1 / multipliers_.logits}; }
  std::vector<RopeTable> ropes() const override;
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override;

 private:
  bool has_rope_;
  GraniteMultipliers multipliers_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_GRANITE_H_
