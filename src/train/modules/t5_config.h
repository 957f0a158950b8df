// SPDX-License-Identifier: Apache-2.0
// The shape of an encoder-decoder of the T5 v1.1 kind, and its Hugging Face config.json.
#ifndef OUTRIDER_TRAIN_MODULES_T5_CONFIG_H_
#define OUTRIDER_TRAIN_MODULES_T5_CONFIG_H_

#include <filesystem>
#include <nlohmann/json.hpp>

#include "io/tensor_source.h"
#include "outrider/types.h"

namespace outrider::train {

// Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text
// Transformer" (2020), with the changes of version 1.1: a gated GELU, and an output matrix separate
// from the embedding.
struct T5Config {
  int vocabulary_size = 0;
  int dim = 0;  // d_model
  int n_heads = 0;
  int head_dim = 0;    // d_kv; heads * head_dim may differ from dim
  int hidden_dim = 0;  // d_ff
  int n_encoder_layers = 0;
  int n_decoder_layers = 0;
  // Buckets of distances between positions (relative_position_bucket), an even number: the paper's
  // section 2.1.
  int n_buckets = 32;
  int max_distance = 128;
  double norm_epsilon = 1e-6;
  TokenId padding = 0;  // after the shorter texts of a batch
  TokenId start = 0;    // the decoder's first input
  TokenId end = 1;
};

// config.json as transformers' T5ForConditionalGeneration reads it. `dropout` is the initial
// dropout of further training there.
nlohmann::ordered_json t5_config_json(const T5Config& config, ElementType type, double dropout);

// Reads the config.json of a directory. Throws Error with the name of a key that is missing or
// whose value is not of this kind of model; ids are below vocab_size. transformers 5 writes
// "tie_word_embeddings" as true for every T5, and for this kind "scale_decoder_outputs" as false.
// The weights then tell whether there is a separate output matrix (make_t5() requires one).
T5Config read_t5_config(const std::filesystem::path& directory);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_MODULES_T5_CONFIG_H_
