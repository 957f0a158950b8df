// SPDX-License-Identifier: Apache-2.0
#include "model/require_decoder.h"

#include <fmt/format.h>

#include "outrider/error.h"

namespace outrider {

void require_decoder(const ModelConfig& config, std::string_view operation) {
  if (!config.has_encoder()) return;
  throw UsageError(operation, "model", "a decoder",
                   fmt::format("an encoder-decoder ({})", config.architecture));
}

}  // namespace outrider
