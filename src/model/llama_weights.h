// The weights of a Llama-family model, packed for one kernel table, and how they come out of a
// file. Hugging Face directories and GGUF files name and order the same numbers differently; after
// loading, the two are indistinguishable.
#ifndef OUTRIDER_MODEL_LLAMA_WEIGHTS_H_
#define OUTRIDER_MODEL_LLAMA_WEIGHTS_H_

#include <functional>
#include <optional>
#include <vector>

#include "io/tensor_source.h"
#include "model/config.h"
#include "tensor/matrix.h"

namespace outrider {

// A product with an optional bias: y (n_columns) = W x + bias.
struct Linear {
  Matrix matrix;            // (n_columns, k)
  std::vector<float> bias;  // (n_columns), or empty
};

struct LlamaLayer {
  std::vector<float> attention_norm;  // (dim)
  Linear query;                       // (n_heads * head_dim, dim)
  Linear key;                         // (n_kv_heads * head_dim, dim)
  Linear value;                       // (n_kv_heads * head_dim, dim)
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

  bool quantized = false;  // some matrix is int8 or int4
  bool all_f32 = false;    // every matrix is f32
};

enum class NamingScheme { hugging_face, gguf };

struct WeightOptions {
  NamingScheme names = NamingScheme::hugging_face;
  std::optional<WeightKind> kind;  // empty: as stored (in a quantised model bf16 widens to f32)
  const KernelTable* table = nullptr;
  int n_threads = 1;
  std::function<void(double)> progress;  // may be empty
};

// Throws Error naming the tensor, what was expected and what came, if a tensor is missing or has a
// wrong shape or type: all of this before the first one is packed. That the numbers are finite is
// not checked: it would cost a pass over the file, and NaN shows in the first logits.
LlamaWeights load_llama_weights(const TensorSource& source, const ModelConfig& config,
                                const WeightOptions& options);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LLAMA_WEIGHTS_H_
