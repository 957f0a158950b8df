// The weights of a Llama-family model, packed for one kernel table, and how they come out of a
// file. Hugging Face directories and GGUF files name and order the same numbers differently; after
// loading, the two are indistinguishable.
#ifndef OUTRIDER_MODEL_LLAMA_WEIGHTS_H_
#define OUTRIDER_MODEL_LLAMA_WEIGHTS_H_

#include <string>
#include <vector>

#include "io/tensor_source.h"
#include "model/config.h"
#include "model/weight_loader.h"

namespace outrider {

struct LlamaLayer {
  std::vector<float> attention_norm;  // (dim), or empty in heads that have none
  Linear query;                       // (n_heads * head_dim, dim; heads: what their form says)
  Linear key;                         // (n_kv_heads * head_dim, as query)
  Linear value;                       // (n_kv_heads * head_dim, as query)
  Linear output;                      // (dim, n_heads * head_dim)
  std::vector<float> mlp_norm;        // (dim)
  Linear gate;                        // (hidden_dim, dim)
  Linear up;                          // (hidden_dim, dim)
  Linear down;                        // (dim, hidden_dim)
};

// Immutable once loaded. Query and key rows are in the half-split order: pair i of a head's
// rotation is (i, i + head_dim / 2).
struct LlamaWeights {
  TensorView embedding;  // (vocabulary_size, dim), as stored; lives as long as the source
  std::vector<LlamaLayer> layers;
  std::vector<float> final_norm;  // (dim)
  Matrix head;                    // (vocabulary_size, dim)
  TensorView head_as_stored;      // the same, as long as the source lives

  InputForms input_forms;  // what the matrices read, all together
  bool all_f32 = false;    // every matrix is f32
};

// Throws Error as WeightLoader does: all of it before the first tensor is packed.
LlamaWeights load_llama_weights(const TensorSource& source, const ModelConfig& config,
                                const WeightOptions& options);

// How the layers of heads differ from a model's.
struct LayerForm {
  bool attention_norm = true;
  int attention_width = 0;  // inputs of query, key and value products; 0: dim
};

// The layer whose tensors' names begin with `prefix` ("model.layers.3."), in the loader's naming
// scheme.
LlamaLayer load_layer(WeightLoader& loader, const ModelConfig& config, const std::string& prefix,
                      const LayerForm& form = {});

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LLAMA_WEIGHTS_H_
