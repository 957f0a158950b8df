// The Llama family for training: the model of model/decoder_model.h with gradients. Submodules
// carry the names of Hugging Face's checkpoints, so that named_parameters() is what an export
// holds.
#ifndef OUTRIDER_TRAIN_LLAMA_MODULE_H_
#define OUTRIDER_TRAIN_LLAMA_MODULE_H_

#include <torch/torch.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "io/tensor_source.h"
#include "model/config.h"
#include "train/fused_steps.h"
#include "train/products.h"

namespace outrider::train {

// x W^T (+ bias), in x's type; the product alone may be in bf16. Over f32 parameters this is mixed
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
// undefined before the first.
struct PastKeys {
  torch::Tensor keys;
  torch::Tensor values;
};

// Keys and values of a head that is run over a whole text several times, each time on what it gave
// the time before: those of the first time, and those of every later time, of which a query sees
// its own row's alone. (n_sequences, n_heads, n_tokens, head_dim) each.
struct UnrolledKeys {
  std::vector<torch::Tensor> keys;
  std::vector<torch::Tensor> values;
};

// Rows that do not stand one behind the other.
struct RowPlaces {
  torch::Tensor positions;  // (n_rows) int64
  torch::Tensor unseen;     // (n_rows, n_rows) boolean: the rows that a row does not attend to
};

// The angles of positions first .. first + n_tokens - 1, of the given type and device.
Rotation rotation_of(const ModelConfig& config, int first, int n_tokens,
                     const torch::TensorOptions& like);

// Of these positions (n_rows) int64.
Rotation rotation_at(const ModelConfig& config, const torch::Tensor& positions,
                     const torch::TensorOptions& like);

// One decoder layer. Some feature heads have no norm before their attention (EAGLE), or attend with
// queries, keys and values of a wider input (EAGLE-3).
class DecoderLayerImpl : public torch::nn::Module {
 public:
  struct Options {
    bool input_norm = true;
    int attention_input_width = 0;  // 0: the config's dim
  };
  DecoderLayerImpl(const ModelConfig& config, Products products, Options options);
  DecoderLayerImpl(const ModelConfig& config, Products products)
      : DecoderLayerImpl(config, products, Options()) {}

  // x (n_sequences, n_tokens, dim) -> the same shape. past, if given, is extended. Of what is added
  // to the stream a share of `dropout` is left out, drawn from torch's generator, and the rest
  // grown to make up for it.
  torch::Tensor forward(const torch::Tensor& x, const Rotation& rotation, PastKeys* past = nullptr,
                        double dropout = 0);
  // The same where row i attends to all rows but those that unseen[i] names (RowPlaces).
  torch::Tensor forward_among(const torch::Tensor& x, const Rotation& rotation,
                              const torch::Tensor& unseen);
  // What the layer's attention adds to the stream at the next time of an unrolled head, for an
  // attention input of its own: row j sees the first time's rows as mask
  // (n_tokens, n_tokens) says, and row j of every time since, this one included (the training-time
  // test of EAGLE-3, arXiv 2503.01840). unrolled is extended. In the products' type, for
  // stream_sum().
  torch::Tensor attend_unrolled(const torch::Tensor& input, const Rotation& rotation,
                                const torch::Tensor& mask, UnrolledKeys& unrolled);
  torch::Tensor feed_forward(const torch::Tensor& input);  // likewise

  RmsNorm input_layernorm{nullptr};
  RmsNorm post_attention_layernorm{nullptr};

 private:
  struct Heads {
    // (n_sequences, n_heads or n_kv_heads, n_tokens, head_dim) in the products' type; queries by
    // the scale of scores
    torch::Tensor query, key, value;
  };
  Heads heads_of(const torch::Tensor& input, const Rotation& rotation);
  // shares(scores): the softmax of scores (n_sequences, n_heads, n_tokens, n_keys), over what a
  // token sees.
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

// 0 where a query may look, minus infinity at later keys: (n_tokens, n_tokens).
torch::Tensor causal_mask(int n_tokens, const torch::TensorOptions& like);

// Weights from a normal law of 0.02, those that write into the residual stream divided by the root
// of the number of times it is written to (Radford et al. 2019, section 2.3); norms at one, biases
// at zero. Draws from torch's generator.
void initialise(torch::nn::Module& module, int n_layers);

class LlamaModuleImpl : public torch::nn::Module {
 public:
  // The parameters are f32, and on the processor, until the module is converted.
  LlamaModuleImpl(const ModelConfig& config, Products products);

  // tokens (n_sequences, n_tokens) int64 -> (n_sequences, n_tokens, dim), what the head reads.
  // past: empty, or one per layer; then tokens follow those it holds.
  torch::Tensor features(const torch::Tensor& tokens, std::vector<PastKeys>* past = nullptr);
  // tokens (n_sequences, n_rows) int64 at these places -> (n_sequences, n_rows, dim). No dropout.
  torch::Tensor features_among(const torch::Tensor& tokens, const RowPlaces& places);
  // features (..., dim) -> logits (..., vocabulary_size), in the features' type
  torch::Tensor logits(const torch::Tensor& features);
  // Of tokens (...) int64, the loss of each after its features (..., dim): cross_entropy_rows() of
  // the logits, which are never held in f32 where products are bf16.
  torch::Tensor token_losses(const torch::Tensor& features, const torch::Tensor& tokens);
  torch::Tensor embed(const torch::Tensor& tokens);

  // While the module is training, the share of the elements of the embeddings, and of what every
  // layer adds to the stream, that features() leaves out (Srivastava et al., "Dropout", 2014, where
  // Vaswani et al. 2017 have it).
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

// A model with the weights of a Hugging Face directory, or, where that is empty, random ones; on
// the training device.
LlamaModule make_llama(const ModelConfig& config, Products products,
                       const std::filesystem::path& init, std::uint64_t seed);

// Fills the module's parameters from tensors of the same names. Throws Error naming the first that
// is missing or has another shape.
void load_parameters(torch::nn::Module& module, const TensorSource& source);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_LLAMA_MODULE_H_
