// SPDX-License-Identifier: Apache-2.0
// Reads which activation a model uses.
#ifndef OUTRIDER_MODEL_LOAD_ACTIVATION_H_
#define OUTRIDER_MODEL_LOAD_ACTIVATION_H_

#include "model/load/config_source.h"
#include "model/pass/blocks.h"

namespace outrider {

// By Hugging Face's names; `otherwise` if the file has none, as GGUF files. Throws Error for an
// activation that no kernel computes.
Activation read_activation(const ConfigSource& source, const char* hugging_face_key,
                           Activation otherwise);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOAD_ACTIVATION_H_
