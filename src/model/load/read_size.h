// Numbers that size things, read within bounds: far beyond any model's, so that no size overflows.
#ifndef OUTRIDER_MODEL_LOAD_READ_SIZE_H_
#define OUTRIDER_MODEL_LOAD_READ_SIZE_H_

#include "model/load/config_source.h"

namespace outrider {

// Throws Error that names the key unless least <= value <= most.
void require_range(const ConfigSource& source, const ConfigKey& key, int value, int least,
                   int most);

// The number at that key. config.json may leave it out, which means `otherwise`; GGUF must have it.
// Throws Error that names the key where it is missing or out of bounds.
int read_size(const ConfigSource& source, const ConfigKey& key, int otherwise, int least, int most);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOAD_READ_SIZE_H_
