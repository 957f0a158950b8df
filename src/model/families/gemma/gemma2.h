// SPDX-License-Identifier: Apache-2.0
// Gemma 2 (Gemma Team 2024, arXiv 2408.00118): every other layer with a sliding window, one RoPE
// table, scores and logits capped.
#ifndef OUTRIDER_MODEL_FAMILIES_GEMMA_GEMMA2_H_
#define OUTRIDER_MODEL_FAMILIES_GEMMA_GEMMA2_H_

#include "model/families/gemma/gemma.h"

namespace outrider {

class Gemma2 final : public Gemma {
 public:
  explicit Gemma2(const ConfigSource& source);
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_GEMMA_GEMMA2_H_
