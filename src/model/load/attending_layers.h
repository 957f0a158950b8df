// Which layers of a hybrid attend, as configurations say it.
#ifndef OUTRIDER_MODEL_LOAD_ATTENDING_LAYERS_H_
#define OUTRIDER_MODEL_LOAD_ATTENDING_LAYERS_H_

#include <optional>
#include <vector>

#include "model/load/config_source.h"

namespace outrider {

// What config.json's lists call a layer that attends, and one that does not.
struct LayerTypes {
  const char* attends;
  const char* recurrent;
};

// (n_layers), by the names at that key of config.json. Nothing where there is no such key. Throws
// Error on another number of names, and on other names.
std::optional<std::vector<bool>> read_attends_by_type(const ConfigSource& source,
                                                      const char* hugging_face_key,
                                                      const LayerTypes& types, int n_layers);

// (n_layers), by GGUF's heads of keys and values of each layer: 0 where it does not attend. All of
// them where the file says nothing. Throws Error on another number of numbers, and on one that is
// no list.
std::vector<bool> read_attends_by_heads(const ConfigSource& source, int n_layers);

// The one number of heads that those layers have. Throws Error on different ones.
int read_heads_of_attending(const ConfigSource& source, int otherwise);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOAD_ATTENDING_LAYERS_H_
