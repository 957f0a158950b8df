// Multi-token prediction modules among the layers that a GGUF file counts.
#ifndef OUTRIDER_MODEL_LOAD_MODULES_BEHIND_H_
#define OUTRIDER_MODEL_LOAD_MODULES_BEHIND_H_

#include "model/load/config_source.h"

namespace outrider {

// How many of GGUF's block_count are modules, the last ones; 0 of config.json, whose layers are the
// decoder's. Throws Error unless a layer is left.
int read_n_modules_behind(const ConfigSource& source);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOAD_MODULES_BEHIND_H_
