// Granite 3 and 4, dense (IBM 2024): a Llama with four multipliers, of embeddings, scores, what
// layers add and logits.
#ifndef OUTRIDER_MODEL_FAMILIES_GRANITE_H_
#define OUTRIDER_MODEL_FAMILIES_GRANITE_H_

#include "model/families/llama.h"

namespace outrider {

class Granite final : public Family {
 public:
  explicit Granite(const ConfigSource& source);
  float embedding_scale() const override { return embedding_; }
  LogitForm logit_form() const override { return {.scale = 1 / logits_}; }
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override;

 private:
  float embedding_;
  float scores_;
  float residual_;
  float logits_;  // divides them
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_GRANITE_H_
