// What a loaded Llama model occupies, for people to read.
#include <set>
#include <string>

#include "model/llama.h"

namespace outrider {
Footprint LlamaModel::footprint() const {
  Footprint footprint;
  std::set<std::string> kinds;
  const auto add_matrix = [&](const Matrix& matrix) {
    kinds.insert(kernels::name_of(matrix.kind()));
    footprint.weight_bytes += static_cast<std::int64_t>(matrix.packed_bytes());
    footprint.n_parameters += static_cast<std::int64_t>(matrix.n_columns()) * matrix.k();
  };
  const auto add_vector = [&](const std::vector<float>& vector) {
    footprint.n_parameters += static_cast<std::int64_t>(vector.size());
  };
  for (const LlamaLayer& layer : parts_.weights.layers) {
    for (const Linear* linear : {&layer.query, &layer.key, &layer.value, &layer.output, &layer.gate,
                                 &layer.up, &layer.down}) {
      add_matrix(linear->matrix);
      add_vector(linear->bias);
    }
    add_vector(layer.attention_norm);
    add_vector(layer.mlp_norm);
  }
  add_vector(parts_.weights.final_norm);
  add_matrix(parts_.weights.head);
  if (!parts_.config.tied_head) {
    footprint.n_parameters +=
        static_cast<std::int64_t>(parts_.config.vocabulary_size) * parts_.config.dim;
  }
  for (const std::string& kind : kinds) {
    footprint.weights += footprint.weights.empty() ? kind : " " + kind;
  }
  footprint.kernels = parts_.table->name;
  footprint.kv = name_of(parts_.kv);
  footprint.kv_bytes_per_token = layers_.kv_bytes_per_token();
  return footprint;
}

}  // namespace outrider
