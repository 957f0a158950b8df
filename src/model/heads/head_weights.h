// SPDX-License-Identifier: Apache-2.0
// Reads the tensors of a feature head's layer from a file: a Llama's, with Hugging Face's names.
#ifndef OUTRIDER_MODEL_HEADS_HEAD_WEIGHTS_H_
#define OUTRIDER_MODEL_HEADS_HEAD_WEIGHTS_H_

#include <string>

#include "model/families/llama.h"
#include "model/load/layer_loader.h"

namespace outrider {

// The layer whose tensors' names begin with `prefix` ("model.layers.3.").
inline DecoderLayer layer_of(WeightLoader& loader, const ModelConfig& config,
                             const std::string& prefix, const LlamaLayerForm& form = {}) {
  LayerLoader from(loader, prefix);
  return load_llama_layer(from, config, form);
}

// The norm of that name, (dim).
inline Norm norm_of(WeightLoader& loader, const std::string& name, const ModelConfig& config) {
  return {.weight = loader.vector(name, config.dim), .epsilon = config.norm_epsilon};
}

}  // namespace outrider

#endif  // OUTRIDER_MODEL_HEADS_HEAD_WEIGHTS_H_
