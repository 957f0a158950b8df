// SPDX-License-Identifier: Apache-2.0
// Multi-token prediction modules among the layers that a GGUF file counts.
#ifndef OUTRIDER_MODEL_LOAD_MODULES_BEHIND_H_
#define OUTRIDER_MODEL_LOAD_MODULES_BEHIND_H_

#include "model/load/config_source.h"

namespace outrider {

// The number of modules in GGUF's block_count, which are the last blocks; 0 for config.json, whose
// count is the decoder's. Throws Error unless a layer is left.
int read_n_modules_behind(const ConfigSource& source);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOAD_MODULES_BEHIND_H_
