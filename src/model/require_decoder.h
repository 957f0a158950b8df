// What reads a text alone says so at once where a model wants an encoder's prompt, too.
#ifndef OUTRIDER_MODEL_REQUIRE_DECODER_H_
#define OUTRIDER_MODEL_REQUIRE_DECODER_H_

#include <string_view>

#include "model/config.h"

namespace outrider {

// Throws UsageError, which names the operation, where the model is an encoder-decoder.
void require_decoder(const ModelConfig& config, std::string_view operation);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_REQUIRE_DECODER_H_
