// SPDX-License-Identifier: Apache-2.0
// An encoder-decoder of the T5 v1.1 kind for training. Submodules have the names of Hugging Face's
// checkpoints, so named_parameters() gives the tensors of an export.
#ifndef OUTRIDER_TRAIN_MODULES_T5_MODULE_H_
#define OUTRIDER_TRAIN_MODULES_T5_MODULE_H_

#include <torch/torch.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "train/modules/llama_module.h"
#include "train/modules/products.h"
#include "train/modules/t5_config.h"

namespace outrider::train {

// The bucket of a key that is `distance` places after its query (negative: before it), in [0,
// n_buckets). With `both_ways`, half of the buckets are for keys after the query; without, such
// keys share the bucket of distance 0. Of a direction's n buckets, the first n / 2 hold one
// distance each. The others hold ranges that grow logarithmically up to max_distance; the last
// bucket also holds all larger distances (Raffel et al. 2020, section 2.1).
int relative_position_bucket(int distance, bool both_ways, int n_buckets, int max_distance);

// Changes to an attention's scores (n_texts, n_heads, n_queries, n_keys).
struct ScoreTerms {
  torch::Tensor bias;   // added, broadcast; undefined: none
  bool causal = false;  // the last n_queries keys are the queries'; none sees a later one
};

// Attention without biases and without scaling of its scores.
class T5AttentionImpl : public torch::nn::Module {
 public:
  // with_positions: it holds the bias of relative positions for all layers of its stack.
  T5AttentionImpl(const T5Config& config, Products products, bool with_positions);

  // (n_texts, n_rows, dim) -> keys and values of these rows
  PastKeys keys_of(const torch::Tensor& rows);
  // input (n_texts, n_queries, dim) -> the same shape
  torch::Tensor forward(const torch::Tensor& input, const PastKeys& keys, const ScoreTerms& terms);
  // (1, n_heads, n_queries, n_queries + first): the bias of queries first, first + 1, ... against
  // all keys up to the last query's. Only with_positions.
  torch::Tensor position_bias(int first, int n_queries, bool both_ways);

 private:
  T5Config config_;
  Products products_;
  torch::nn::Linear query_{nullptr}, key_{nullptr}, value_{nullptr}, output_{nullptr};
  torch::nn::Embedding position_{nullptr};
};
TORCH_MODULE(T5Attention);

// GELU(x W0) * (x W1), multiplied by a third matrix (Shazeer, "GLU Variants Improve Transformer",
// 2020). GELU is its tanh approximation.
class T5FeedForwardImpl : public torch::nn::Module {
 public:
  T5FeedForwardImpl(const T5Config& config, Products products);
  torch::Tensor forward(const torch::Tensor& input, double dropout);

 private:
  Products products_;
  torch::nn::Linear gate_{nullptr}, up_{nullptr}, down_{nullptr};
};
TORCH_MODULE(T5FeedForward);

// The encoder's output for some texts.
struct Encoded {
  torch::Tensor rows;  // (n_texts, n_tokens, dim)
  // (n_texts, 1, 1, n_tokens): 0 for tokens, minus infinity for padding; undefined without padding.
  torch::Tensor mask;
};

// The keys and values a decoder has computed so far, for each layer: of its own rows and of the
// encoder's.
struct T5Past {
  std::vector<PastKeys> own;
  std::vector<PastKeys> encoders;
};

class T5ModuleImpl : public torch::nn::Module {
 public:
  // The parameters are f32 and on the processor until the module is converted.
  T5ModuleImpl(const T5Config& config, Products products);

  // tokens (n_texts, n_tokens) int64, padded at the end; n_in_texts (n_texts) int64: tokens before
  // the padding, at least one.
  Encoded encode(const torch::Tensor& tokens, const torch::Tensor& n_in_texts);
  // Reads the decoder's tokens (n_texts, n_tokens) int64. Returns the input of the output matrix
  // after each of them, (n_texts, n_tokens, dim). With `past`, the tokens follow those in it, and
  // it is extended; it belongs to one `encoded`. Padding after a text needs no mask, since no token
  // attends to it.
  torch::Tensor decode(const torch::Tensor& tokens, const Encoded& encoded, T5Past* past = nullptr);
  // features (..., dim) -> logits (..., vocabulary_size)
  torch::Tensor logits(const torch::Tensor& features);

  // Sets the dropout used while the module is training. It applies to embeddings, layer outputs,
  // the hidden vectors of the feed-forward layers and the outputs of both stacks.
  void set_dropout(double share) { dropout_ = share; }

  const T5Config& config() const { return config_; }

 private:
  struct EncoderBlock {
    RmsNorm attention_norm{nullptr}, feed_forward_norm{nullptr};
    T5Attention attention{nullptr};
    T5FeedForward feed_forward{nullptr};
  };
  struct DecoderBlock : EncoderBlock {
    RmsNorm cross_norm{nullptr};
    T5Attention cross_attention{nullptr};
  };
  double share_left_out() const { return is_training() ? dropout_ : 0; }
  torch::Tensor embed(const torch::Tensor& tokens);

  T5Config config_;
  Products products_;
  double dropout_ = 0;
  torch::nn::Embedding embedding_{nullptr};
  std::vector<EncoderBlock> encoder_;
  std::vector<DecoderBlock> decoder_;
  RmsNorm encoder_norm_{nullptr}, decoder_norm_{nullptr};
  torch::nn::Linear head_{nullptr};
};
TORCH_MODULE(T5Module);

// Greedy decoding: a list of tokens for each text that encode() takes. Of equally likely tokens the
// lowest id is chosen. A list ends before the end token or after `max_tokens` tokens. `never`: ids
// below the vocabulary's size that are never chosen. No dropout and no gradients, in any mode of
// the module.
std::vector<std::vector<TokenId>> answer_greedily(T5Module& model, const torch::Tensor& tokens,
                                                  const torch::Tensor& n_in_texts, int max_tokens,
                                                  std::span<const TokenId> never = {});

// A model on the training device with the weights of a Hugging Face directory, or random weights if
// `init` is empty. Throws Error.
T5Module make_t5(const T5Config& config, Products products, const std::filesystem::path& init,
                 std::uint64_t seed);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_MODULES_T5_MODULE_H_
