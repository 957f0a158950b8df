// SPDX-License-Identifier: Apache-2.0
// Reads which layers of a model have a sliding window: config.json's layer_types.
#ifndef OUTRIDER_MODEL_LOAD_LAYER_WINDOWS_H_
#define OUTRIDER_MODEL_LOAD_LAYER_WINDOWS_H_

#include <optional>
#include <vector>

#include "model/load/config_source.h"

namespace outrider {

// The window at that key, in tokens; `otherwise` if the file has none. Throws Error outside 1 to
// 2^24, the limit of context lengths.
int read_window(const ConfigSource& source, const ConfigKey& key, int otherwise);

// (n_layers): `window` for "sliding_attention", 0 for "full_attention"; nullopt if the file does
// not list its layers. Throws Error on another type, another number of layers, or a sliding layer
// without a window.
std::optional<std::vector<int>> read_layer_windows(const ConfigSource& source, int n_layers,
                                                   int window);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOAD_LAYER_WINDOWS_H_
