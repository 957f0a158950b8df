// SPDX-License-Identifier: Apache-2.0
// Gemma 3, text (Gemma Team 2025, arXiv 2503.19786): a Gemma with norms of query and key heads. For
// each layer that reads all tokens there are five with a sliding window and another RoPE base.
#ifndef OUTRIDER_MODEL_FAMILIES_GEMMA_GEMMA3_H_
#define OUTRIDER_MODEL_FAMILIES_GEMMA_GEMMA3_H_

#include <vector>

#include "model/families/gemma/gemma.h"

namespace outrider {

class Gemma3 final : public Gemma {
 public:
  explicit Gemma3(const ConfigSource& source);
  std::vector<RopeTable> ropes() const override;
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;

 private:
  enum Rope { kGlobal, kLocal };

  RopeConfig local_rope_;  // of layers with a window
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_GEMMA_GEMMA3_H_
