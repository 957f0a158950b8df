// SPDX-License-Identifier: Apache-2.0
// A check for operations that support decoders only.
#ifndef OUTRIDER_MODEL_REQUIRE_DECODER_H_
#define OUTRIDER_MODEL_REQUIRE_DECODER_H_

#include <string_view>

#include "model/config.h"

namespace outrider {

// Throws UsageError, with the operation, if the model is an encoder-decoder.
void require_decoder(const ModelConfig& config, std::string_view operation);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_REQUIRE_DECODER_H_
