// SPDX-License-Identifier: Apache-2.0
// The weights of a decoder, packed for one kernel table, and their loading from a file. After
// loading, Hugging Face directories and GGUF files are indistinguishable.
#ifndef OUTRIDER_MODEL_LOAD_DECODER_WEIGHTS_H_
#define OUTRIDER_MODEL_LOAD_DECODER_WEIGHTS_H_

#include <string>
#include <vector>

#include "io/tensor_source.h"
#include "model/families/family.h"
#include "model/load/names_in_file.h"
#include "model/pass/blocks.h"
#include "model/weight_loader.h"

namespace outrider {

// Immutable once loaded, except for matrices that are released once a device has them.
struct DecoderWeights {
  TensorView embedding;      // (vocabulary_size, dim), as stored; lives as long as the source
  TensorView positions;      // (context_length, dim), the same, if they are learned
  LayerInputs layer_inputs;  // its table lives as long as the source
  std::vector<DecoderLayer> layers;
  std::vector<DecoderLayer> encoder_layers;  // of an encoder-decoder
  Norm encoder_norm;                         // (dim), after them
  Norm final_norm;                           // (dim)
  Matrix head;                               // (vocabulary_size, dim), or a rank's part of it
  std::vector<int> head_parts;               // Linear::parts
  TensorView head_as_stored;                 // the same; lives as long as the source
  bool all_f32 = false;                      // every matrix is f32
  std::vector<std::string> unread;  // names of weights outside of its layers that are not read
};

// Whether the output matrix is the embedding: as the configuration says, unless a different output
// matrix is stored.
bool has_tied_head(const TensorSource& source, const ModelConfig& config, const NamesInFile& names);
// The same for a Hugging Face directory, by a Llama's names.
bool has_tied_head(const TensorSource& source, const ModelConfig& config);

// With options.share, loads the part of that rank (ranks/share_weights.h) and reads nothing else.
// Throws Error as WeightLoader does, and for a weight of a layer that the family does not read; all
// checks come before the first tensor is packed.
DecoderWeights load_decoder_weights(const TensorSource& source, const Family& family,
                                    const WeightOptions& options);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOAD_DECODER_WEIGHTS_H_
