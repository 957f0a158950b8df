// SPDX-License-Identifier: Apache-2.0
// The shape of a model, as read from its files.
#ifndef OUTRIDER_MODEL_CONFIG_H_
#define OUTRIDER_MODEL_CONFIG_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/gguf/gguf.h"
#include "outrider/types.h"

namespace outrider {

// Rotary position embedding: angle = position * frequency, frequencies fixed at load.
struct RopeConfig {
  enum class Scaling { none, linear, llama3, yarn, longrope, proportional };
  double theta = 10000;
  Scaling scaling = Scaling::none;
  double factor = 1;                // linear, llama3, yarn, proportional
  double low_frequency_factor = 1;  // llama3
  double high_frequency_factor = 4;
  double original_context = 8192;  // llama3, yarn, longrope
  // yarn: pairs that rotate more than beta_fast times over the original context keep their
  // frequency; for those that rotate less than beta_slow times it is divided by factor.
  double beta_fast = 32;
  double beta_slow = 1;
  bool whole_bounds = true;     // the bounds between them are rounded outwards to whole pairs
  double attention_factor = 1;  // yarn: rotated queries and keys are multiplied by it
  double weight_of_all = 0;     // yarn: DeepSeek's mscale_all_dim, which its family reads
  // One divisor for each rotated pair's frequency, or empty. GGUF files store llama3 scaling in
  // this form (rope_freqs.weight), rounded to f32. longrope: those of texts up to original_context.
  std::vector<float> divisors;
  std::vector<float> long_divisors;  // longrope: those of longer texts
  float magnitude = 1;               // cosines and sines are multiplied by it
  // proportional (Gemma 4): the number of rotated pairs, the first ones, with the frequencies that
  // they have among all pairs; the others are not rotated.
  int n_turning = 0;
  // Rotated queries are multiplied by 1 + query_beta log(1 + floor(position / original_context));
  // original_context must be a whole number then. 0: they are not.
  double query_beta = 0;
};

// What all decoders have in common; families/ hold the rest. All numbers are checked against sane
// bounds when read.
struct ModelConfig {
  std::string architecture;  // the family: "llama", "qwen2", ...
  int vocabulary_size = 0;
  int context_length = 0;  // tokens
  int n_layers = 0;
  int dim = 0;  // width of the residual stream
  int n_heads = 0;
  int n_kv_heads = 0;  // divides n_heads
  int head_dim = 0;    // even
  int rotary_dim = 0;  // rotated width of a head, even; 0: all
  int hidden_dim = 0;  // width of the feed-forward layer
  // For latent attention, whose heads share one key: a latent of latent_dim elements, which is also
  // the value, and rotary_dim more. 0: heads have separate keys and values.
  int latent_dim = 0;
  // Layers without a window in Gemma 4: the number and width of their key and value heads. 0: all
  // layers have the same.
  int whole_n_kv_heads = 0;
  int whole_head_dim = 0;
  // (n_layers) the earlier layer whose keys and values a layer reads, or -1: its own. Empty: all
  // have their own.
  std::vector<int> lenders = {};
  int layer_input_dim = 0;  // width of each layer's part of a second embedding; 0: none
  // Mixtures of experts; 0: no layer has any.
  int n_experts = 0;        // of a layer that has them
  int n_experts_used = 0;   // by each row
  int expert_dim = 0;       // width of each expert's feed-forward layer
  int n_expert_layers = 0;  // the others have one feed-forward layer, of hidden_dim
  float norm_epsilon = 1e-5F;
  RopeConfig rope;
  // For an encoder-decoder: layers of its encoder (n_layers: of its decoder), and the first token
  // of the decoder's texts. 0: a decoder.
  int n_encoder_layers = 0;
  TokenId start_token = kNoToken;
  bool tied_head = false;       // the output matrix is the embedding
  bool attention_bias = false;  // query, key and value products have biases (output too if stored)
  bool mlp_bias = false;
  TokenId bos_token = kNoToken;
  std::vector<TokenId> end_tokens;  // any of them ends a text
  // The token of positions to predict, in models that draft several tokens at once (PARD);
  // unchecked.
  std::optional<TokenId> mask_token = std::nullopt;
  // Doubtful points of the files that did not stop loading, a sentence each.
  std::vector<std::string> warnings;

  bool has_encoder() const { return n_encoder_layers > 0; }
  // Rotated elements of a head: its first ones.
  int rotated_dim() const { return rotary_dim > 0 ? rotary_dim : head_dim; }
};

// Reads config.json and, if present, generation_config.json of a Hugging Face directory, by its
// family (families/registry.h). Throws Error as read_family does.
ModelConfig read_config_json(const std::filesystem::path& directory);

// Throws Error, with the field, unless every number of the config is within its bounds and they fit
// together. Both readers call it last. operation and object go into the message.
void check_config(const ModelConfig& config, std::string_view operation, std::string_view object);

// The same from GGUF metadata and, for what it lacks, the tensors' shapes.
ModelConfig read_config_gguf(const GgufFile& file);

// The first layer that would run and read the keys and values of a skipped layer, which has written
// none; empty if there is none. skip_layers: ascending.
struct UnreadableKeys {
  int layer = 0;
  int lender = 0;
};
std::optional<UnreadableKeys> unreadable_keys(const ModelConfig& config,
                                              std::span<const int> skip_layers);

// (rotated_dim / 2) radians per position, scaling applied. llama3: the smooth interpolation between
// kept and divided frequencies of Llama 3.1. yarn: Peng et al., "YaRN", arXiv 2309.00071, section
// 3.2. longrope: of texts up to original_context.
std::vector<double> rope_frequencies(const ModelConfig& config);

// The rotation angles of the queries and keys of a pass.
struct RopeTable {
  std::vector<double> frequencies;  // radians per position, of each rotated pair
  // longrope (Ding et al. 2024, arXiv 2402.13753), as in Hugging Face's generate(): for all rows of
  // texts longer than original_context. Or empty.
  std::vector<double> long_frequencies = {};
  int original_context = 0;  // tokens
  float magnitude = 1;       // cosines and sines are multiplied by it
  double query_beta = 0;     // as in RopeConfig

  // Whether a text of n_tokens tokens has other angles than longer ones.
  bool is_short(int n_tokens) const {
    return !long_frequencies.empty() && n_tokens <= original_context;
  }
  // The factor of a rotated query at that position. Requires query_beta != 0.
  float query_scale(int position) const;
};
RopeTable rope_table(const ModelConfig& config);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CONFIG_H_
