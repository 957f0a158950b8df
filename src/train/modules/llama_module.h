// SPDX-License-Identifier: Apache-2.0
// The Llama family for training: the model of model/decoder_model.h with gradients. Submodules have
// the names of Hugging Face's checkpoints, so named_parameters() gives the tensors of an export.
#ifndef OUTRIDER_TRAIN_MODULES_LLAMA_MODULE_H_
#define OUTRIDER_TRAIN_MODULES_LLAMA_MODULE_H_

#include <torch/torch.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "io/tensor_source.h"
#include "model/config.h"
#include "train/fused/fused_steps.h"
#include "train/modules/products.h"

namespace outrider::train {

// x W^T (+ bias), in x's type; only the product may be in bf16. With f32 parameters this is mixed
// precision with f32 master weights.
torch::Tensor project(const torch::Tensor& x, const torch::nn::Linear& linear, Products products);

class RmsNormImpl : public torch::nn::Module {
 public:
  RmsNormImpl(int dim, double epsilon);
  torch::Tensor forward(const torch::Tensor& x) { return forward(x, x.scalar_type()); }
  torch::Tensor forward(const torch::Tensor& x, torch::ScalarType type);
  torch::Tensor weight;  // (dim)

 private:
  double epsilon_;
};
TORCH_MODULE(RmsNorm);

// Keys and values of earlier positions, (n_sequences, n_kv_heads, n_tokens, head_dim) each;
// undefined before the first token.
struct PastKeys {
  torch::Tensor keys;
  torch::Tensor values;
};

// Keys and values of a head that runs several times over a whole text, each time on its previous
// output. Entry 0 is the first run's; each later run adds an entry, of which a query sees only its
// own row. (n_sequences, n_heads, n_tokens, head_dim) each.
struct UnrolledKeys {
  std::vector<torch::Tensor> keys;
  std::vector<torch::Tensor> values;
};

// Positions and attention mask of rows that are not consecutive.
struct RowPlaces {
  torch::Tensor positions;  // (n_rows) int64
  torch::Tensor unseen;     // (n_rows, n_rows) boolean: rows that a row does not attend to
};

// The rotations of positions first .. first + n_tokens - 1, of the type and device of `like`.
Rotation rotation_of(const ModelConfig& config, int first, int n_tokens,
                     const torch::TensorOptions& like);

// The rotations of these positions (n_rows) int64.
Rotation rotation_at(const ModelConfig& config, const torch::Tensor& positions,
                     const torch::TensorOptions& like);

// One decoder layer. Some feature heads have no norm before their attention (EAGLE). Others compute
// queries, keys and values from a wider input (EAGLE-3).
class DecoderLayerImpl : public torch::nn::Module {
 public:
  struct Options {
    bool input_norm = true;
    int attention_input_width = 0;  // 0: the config's dim
  };
  DecoderLayerImpl(const ModelConfig& config, Products products, Options options);
  DecoderLayerImpl(const ModelConfig& config, Products products)
      : DecoderLayerImpl(config, products, Options()) {}

  // x (n_sequences, n_tokens, dim) -> the same shape. past, if given, is extended. dropout: the
  // share of the elements added to the residual stream that is set to zero; the others are scaled
  // up to compensate. Draws from torch's default generator.
  torch::Tensor forward(const torch::Tensor& x, const Rotation& rotation, PastKeys* past = nullptr,
                        double dropout = 0);
  // The same, with row i attending to all rows except those set in unseen[i] (RowPlaces).
  torch::Tensor forward_among(const torch::Tensor& x, const Rotation& rotation,
                              const torch::Tensor& unseen);
  // The attention output of the next run of an unrolled head, with `input` as the attention's
  // input. Row j attends to the first run's rows by mask (n_tokens, n_tokens), and to row j of
  // every later run, this one included (the training-time test of EAGLE-3, arXiv 2503.01840).
  // unrolled is extended. The result has the products' type, for stream_sum().
  torch::Tensor attend_unrolled(const torch::Tensor& input, const Rotation& rotation,
                                const torch::Tensor& mask, UnrolledKeys& unrolled);
  torch::Tensor feed_forward(const torch::Tensor& input);  // of the products' type, too

  RmsNorm input_layernorm{nullptr};
  RmsNorm post_attention_layernorm{nullptr};

 private:
  struct Heads {
    // (n_sequences, n_heads or n_kv_heads, n_tokens, head_dim) in the products' type; queries are
    // multiplied by the attention scale.
    torch::Tensor query, key, value;
  };
  Heads heads_of(const torch::Tensor& input, const Rotation& rotation);
  // shares(scores): the softmax of scores (n_sequences, n_heads, n_tokens, n_keys) over the keys
  // that each token attends to.
  template <class Shares>
  torch::Tensor attend(const torch::Tensor& input, const Rotation& rotation, PastKeys* past,
                       const Shares& shares);
  torch::Tensor for_all_heads(const torch::Tensor& keys) const;  // n_kv_heads -> n_heads
  torch::Tensor product(const torch::Tensor& left, const torch::Tensor& right) const;
  // (n_sequences, n_heads, n_tokens, head_dim) -> (n_sequences, n_tokens, dim)
  torch::Tensor joined(const torch::Tensor& attended);

  ModelConfig config_;
  Products products_;
  torch::nn::Linear query_{nullptr}, key_{nullptr}, value_{nullptr}, output_{nullptr};
  torch::nn::Linear gate_{nullptr}, up_{nullptr}, down_{nullptr};
};
TORCH_MODULE(DecoderLayer);

// (n_tokens, n_tokens): 0 for keys that a query attends to, minus infinity for later keys.
torch::Tensor causal_mask(int n_tokens, const torch::TensorOptions& like);

// Draws weights from a normal distribution with a standard deviation of 0.02. For matrices that
// write into the residual stream, it is divided by the square root of the number of such writes
// (Radford et al. 2019, section 2.3). Norms are one, biases zero. Draws from torch's default
// generator.
void initialise(torch::nn::Module& module, int n_layers);

class LlamaModuleImpl : public torch::nn::Module {
 public:
  // The parameters are f32 and on the processor until the module is converted.
  LlamaModuleImpl(const ModelConfig& config, Products products);

  // tokens (n_sequences, n_tokens) int64 -> (n_sequences, n_tokens, dim), the input of the output
  // matrix. past: empty, or one entry per layer; the tokens then follow those in it.
  torch::Tensor features(const torch::Tensor& tokens, std::vector<PastKeys>* past = nullptr);
  // tokens (n_sequences, n_rows) int64 at `places` -> (n_sequences, n_rows, dim). No dropout.
  torch::Tensor features_among(const torch::Tensor& tokens, const RowPlaces& places);
  // features (..., dim) -> logits (..., vocabulary_size), in the features' type
  torch::Tensor logits(const torch::Tensor& features);
  // The loss of each token of tokens (...) int64, given its features (..., dim):
  // cross_entropy_rows() of the logits. With bf16 products the logits are never stored in f32.
  torch::Tensor token_losses(const torch::Tensor& features, const torch::Tensor& tokens);
  torch::Tensor embed(const torch::Tensor& tokens);

  // Sets the dropout that features() applies while the module is training. It applies to the
  // embeddings and to the outputs that every layer adds to the residual stream (Srivastava et al.,
  // "Dropout", 2014, at the places of Vaswani et al. 2017).
  void set_dropout(double share) { dropout_ = share; }

  const ModelConfig& config() const { return config_; }
  Products products() const { return products_; }

 private:
  ModelConfig config_;
  Products products_;
  torch::nn::Embedding embedding_{nullptr};
  std::vector<DecoderLayer> layers_;
  double dropout_ = 0;
  RmsNorm norm_{nullptr};
  torch::Tensor product_logits(const torch::Tensor& features);  // in the products' type

  torch::nn::Linear head_{nullptr};  // null: tied to the embedding
};
TORCH_MODULE(LlamaModule);

// A model on the training device with the weights of a Hugging Face directory, or random weights if
// `init` is empty.
LlamaModule make_llama(const ModelConfig& config, Products products,
                       const std::filesystem::path& init, std::uint64_t seed);

// Copies tensors into the module's parameters of the same names. Throws Error with the name of the
// first tensor that is missing or has another shape.
void load_parameters(torch::nn::Module& module, const TensorSource& source);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_MODULES_LLAMA_MODULE_H_
