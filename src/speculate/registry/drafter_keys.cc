// SPDX-License-Identifier: Apache-2.0
#include "speculate/registry/drafter_keys.h"

#include <string>
#include <utility>

#include "speculate/registry/drafter_weights.h"

namespace outrider {

KeyDescription confidence_key(std::string example) {
  return {.name = "confidence",
          .value = "C",
          .default_value = "0",
          .meaning =
              "A path of the draft ends behind the first token to which the drafter gives "
              "less than this probability; 0 never ends it.",
          .example = std::move(example)};
}

KeyDescription weights_key(std::string example) {
  return {.name = DrafterWeights::kKey,
          .value = "f32|bf16|int8|int4",
          .default_value = "as --weights says",
          .meaning = "Type of the drafter's weights in memory, whatever the target's are.",
          .example = std::move(example)};
}

}  // namespace outrider
