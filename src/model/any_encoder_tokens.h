// SPDX-License-Identifier: Apache-2.0
// Arbitrary encoder input, for measurements in which only time matters. Thread-safe.
#ifndef OUTRIDER_MODEL_ANY_ENCODER_TOKENS_H_
#define OUTRIDER_MODEL_ANY_ENCODER_TOKENS_H_

#include <cstddef>
#include <vector>

#include "model/config.h"
#include "outrider/types.h"

namespace outrider {

// As long as a sentence or two, which translations and questions have; empty for decoders.
inline std::vector<TokenId> any_encoder_tokens(const ModelConfig& config) {
  constexpr std::size_t kLength_tokens = 64;
  return std::vector<TokenId>(config.has_encoder() ? kLength_tokens : 0, 0);
}

}  // namespace outrider

#endif  // OUTRIDER_MODEL_ANY_ENCODER_TOKENS_H_
