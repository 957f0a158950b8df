// An encoder-decoder of the T5 v1.1 kind for training. Submodules carry the names of Hugging Face's
// checkpoints, so that named_parameters() is what an export holds.
#ifndef OUTRIDER_TRAIN_T5_MODULE_H_
#define OUTRIDER_TRAIN_T5_MODULE_H_

#include <torch/torch.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "train/llama_module.h"
#include "train/products.h"
#include "train/t5_config.h"

namespace outrider::train {

// The bucket of a key that stands `distance` places behind its query (below 0: before it), in
// [0, n_buckets). With `both_ways` half of the buckets are for keys behind the query; otherwise
// such keys share the query's own bucket. Of a direction's n buckets n / 2 are a distance each;
// those above grow like its logarithm up to max_distance, and what is further away has the last
// one (Raffel et al. 2020, section 2.1).
int relative_position_bucket(int distance, bool both_ways, int n_buckets, int max_distance);

// What becomes of an attention's scores (n_texts, n_heads, n_queries, n_keys).
struct ScoreTerms {
  torch::Tensor bias;   // added, broadcast; undefined for nothing
  bool causal = false;  // the last n_queries keys are the queries' own, and none sees a later one
};

// Attention without biases and without a scale of its scores.
class T5AttentionImpl : public torch::nn::Module {
 public:
  // with_positions: it holds the bias of relative positions, for all layers of its stack.
  T5AttentionImpl(const T5Config& config, Products products, bool with_positions);

  // (n_texts, n_rows, dim) -> keys and values of these rows
  PastKeys keys_of(const torch::Tensor& rows);
  // input (n_texts, n_queries, dim) -> the same shape
  torch::Tensor forward(const torch::Tensor& input, const PastKeys& keys, const ScoreTerms& terms);
  // (1, n_heads, n_queries, n_queries + first): queries first, first + 1, ... against all keys up
  // to the last query's. Only with_positions.
  torch::Tensor position_bias(int first, int n_queries, bool both_ways);

 private:
  T5Config config_;
  Products products_;
  torch::nn::Linear query_{nullptr}, key_{nullptr}, value_{nullptr}, output_{nullptr};
  torch::nn::Embedding position_{nullptr};
};
TORCH_MODULE(T5Attention);

// GELU(x W0) * (x W1) through a third matrix (Shazeer, "GLU Variants Improve Transformer", 2020),
// GELU in its approximation by tanh.
class T5FeedForwardImpl : public torch::nn::Module {
 public:
  T5FeedForwardImpl(const T5Config& config, Products products);
  torch::Tensor forward(const torch::Tensor& input, double dropout);

 private:
  Products products_;
  torch::nn::Linear gate_{nullptr}, up_{nullptr}, down_{nullptr};
};
TORCH_MODULE(T5FeedForward);

// What the encoder has made of some texts.
struct Encoded {
  torch::Tensor rows;  // (n_texts, n_tokens, dim)
  // (n_texts, 1, 1, n_tokens): 0, and minus infinity for padding; undefined where there is none.
  torch::Tensor mask;
};

// What a decoder has read so far: of each layer the keys of its own rows and of the encoder's.
struct T5Past {
  std::vector<PastKeys> own;
  std::vector<PastKeys> encoders;
};

class T5ModuleImpl : public torch::nn::Module {
 public:
  // The parameters are f32, and on the processor, until the module is converted.
  T5ModuleImpl(const T5Config& config, Products products);

  // tokens (n_texts, n_tokens) int64, padded behind; n_in_texts (n_texts) int64: tokens before the
  // padding, one at least.
  Encoded encode(const torch::Tensor& tokens, const torch::Tensor& n_in_texts);
  // What the output matrix reads behind each of these tokens (n_texts, n_tokens) int64 of the
  // decoder's, (n_texts, n_tokens, dim). With `past` they follow those that it holds, and it is
  // extended; it is of one `encoded`. Padding behind a text needs no mask: no token sees it.
  torch::Tensor decode(const torch::Tensor& tokens, const Encoded& encoded, T5Past* past = nullptr);
  // features (..., dim) -> logits (..., vocabulary_size)
  torch::Tensor logits(const torch::Tensor& features);

  // While the module is training, the share that is left out of embeddings, of what layers add, of
  // the feed-forward layers' middles and of what the stacks give.
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

// The likeliest token again and again, ties to the lowest id, until the end token, which is not
// listed, or `most` tokens: a list for each text that encode() takes. `never`: ids below the
// vocabulary's size that are passed over. No dropout and no gradients, whatever the module's mode.
std::vector<std::vector<TokenId>> answer_greedily(T5Module& model, const torch::Tensor& tokens,
                                                  const torch::Tensor& n_in_texts, int most,
                                                  std::span<const TokenId> never = {});

// A model with the weights of a Hugging Face directory, or, where that is empty, random ones; on
// the training device. Throws Error.
T5Module make_t5(const T5Config& config, Products products, const std::filesystem::path& init,
                 std::uint64_t seed);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_T5_MODULE_H_
