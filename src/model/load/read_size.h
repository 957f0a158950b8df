// SPDX-License-Identifier: Apache-2.0
// Reads sizes within bounds. The bounds are far above any model's, so that no size overflows.
#ifndef OUTRIDER_MODEL_LOAD_READ_SIZE_H_
#define OUTRIDER_MODEL_LOAD_READ_SIZE_H_

#include "model/load/config_source.h"

namespace outrider {

// Throws Error, with the key, unless min <= value <= max.
void require_range(const ConfigSource& source, const ConfigKey& key, int value, int min, int max);

// The number at that key. If it is missing, config.json means `otherwise`; GGUF must have it.
// Throws Error, with the key, if it is missing or out of bounds.
int read_size(const ConfigSource& source, const ConfigKey& key, int otherwise, int min, int max);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOAD_READ_SIZE_H_
