// SPDX-License-Identifier: Apache-2.0
// Reads which layers of a hybrid attend.
#ifndef OUTRIDER_MODEL_LOAD_ATTENDING_LAYERS_H_
#define OUTRIDER_MODEL_LOAD_ATTENDING_LAYERS_H_

#include <optional>
#include <vector>

#include "model/load/config_source.h"

namespace outrider {

// The names in config.json's lists of a layer that attends, and of one that does not.
struct LayerTypes {
  const char* attends;
  const char* recurrent;
};

// (n_layers), by the names at that key of config.json; empty if there is no such key. Throws Error
// on another number of names, and on other names.
std::optional<std::vector<bool>> read_attends_by_type(const ConfigSource& source,
                                                      const char* hugging_face_key,
                                                      const LayerTypes& types, int n_layers);

// (n_layers), by GGUF's numbers of key and value heads of each layer: 0 if it does not attend. All
// true if the file says nothing. Throws Error on another number of entries, and if it is not a
// list.
std::vector<bool> read_attends_by_heads(const ConfigSource& source, int n_layers);

// The number of heads that these layers share. Throws Error if it differs between layers.
int read_heads_of_attending(const ConfigSource& source, int otherwise);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOAD_ATTENDING_LAYERS_H_
