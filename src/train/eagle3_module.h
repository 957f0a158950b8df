// The layers of an EAGLE-3 head for training: the forward pass of model/heads/eagle_head.h with
// gradients. Submodules carry the names that such heads have in files.
#ifndef OUTRIDER_TRAIN_EAGLE3_MODULE_H_
#define OUTRIDER_TRAIN_EAGLE3_MODULE_H_

#include <torch/torch.h>

#include <vector>

#include "model/config.h"
#include "train/llama_module.h"
#include "train/products.h"

namespace outrider::train {

class Eagle3HeadImpl : public torch::nn::Module {
 public:
  struct Options {
    int n_layers = 1;       // those behind the first are plain decoder layers
    bool has_mask = false;  // P-EAGLE's mask_hidden
  };
  // config: of the first layer. lm_head (draft vocabulary size, dim): the target's rows of the
  // draft vocabulary, where the head's own begin. Draws from torch's generator.
  Eagle3HeadImpl(const ModelConfig& config, Products products, const torch::Tensor& lm_head,
                 const Options& options);

  // (n_sequences, n_rows, 3 dim) -> (n_sequences, n_rows, dim)
  torch::Tensor fuse(const torch::Tensor& features);
  // What a mask row reads in the place of fused features: (1, 1, dim).
  torch::Tensor fused_mask() { return fuse(mask_hidden_); }

  // The head's step over the text, of a head of one layer: what goes into the next one, of hidden's
  // shape (n_sequences, n_rows, dim).
  torch::Tensor forward(const torch::Tensor& hidden, const torch::Tensor& embeddings, int step,
                        UnrolledKeys& unrolled);
  // One pass over rows at these places, of the same shapes.
  torch::Tensor forward_among(const torch::Tensor& hidden, const torch::Tensor& embeddings,
                              const RowPlaces& places);

  // (n_sequences, n_rows, dim) -> (n_sequences, n_rows, draft vocabulary size)
  torch::Tensor logits(const torch::Tensor& hidden);

  torch::ScalarType type() const { return fc_->weight.scalar_type(); }

 private:
  // The first layer, whose attention sees what mask (n_rows, n_rows) and `unrolled` say.
  torch::Tensor first_layer(const torch::Tensor& hidden, const torch::Tensor& embeddings,
                            const Rotation& rotation, const torch::Tensor& mask,
                            UnrolledKeys& unrolled);

  ModelConfig config_;
  Products products_;
  torch::nn::Linear fc_{nullptr};
  DecoderLayer midlayer_{nullptr};
  RmsNorm hidden_norm_{nullptr};
  std::vector<DecoderLayer> further_;
  RmsNorm norm_{nullptr};
  torch::nn::Linear lm_head_{nullptr};
  torch::Tensor mask_hidden_;  // (1, 1, 3 dim), where there is one
};
TORCH_MODULE(Eagle3Head);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_EAGLE3_MODULE_H_
