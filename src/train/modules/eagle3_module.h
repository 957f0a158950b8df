// SPDX-License-Identifier: Apache-2.0
// The layers of an EAGLE-3 head for training: the forward pass of model/heads/eagle_head.h with
// gradients. Submodules have the names used in the files of such heads.
#ifndef OUTRIDER_TRAIN_MODULES_EAGLE3_MODULE_H_
#define OUTRIDER_TRAIN_MODULES_EAGLE3_MODULE_H_

#include <torch/torch.h>

#include <vector>

#include "model/config.h"
#include "train/modules/llama_module.h"
#include "train/modules/products.h"

namespace outrider::train {

class Eagle3HeadImpl : public torch::nn::Module {
 public:
  struct Options {
    int n_layers = 1;       // those after the first are plain decoder layers
    bool has_mask = false;  // P-EAGLE's mask_hidden
  };
  // config: of the first layer. lm_head (draft vocabulary size, dim): the target's rows of the
  // draft vocabulary, the initial values of the head's own. Draws from torch's default generator.
  Eagle3HeadImpl(const ModelConfig& config, Products products, const torch::Tensor& lm_head,
                 const Options& options);

  // (n_sequences, n_rows, 3 dim) -> (n_sequences, n_rows, dim)
  torch::Tensor fuse(const torch::Tensor& features);
  // The input of a mask row instead of fused features: (1, 1, dim).
  torch::Tensor fused_mask() { return fuse(mask_hidden_); }

  // One step of a one-layer head over the text. Returns the next step's hidden, of hidden's shape
  // (n_sequences, n_rows, dim).
  torch::Tensor forward(const torch::Tensor& hidden, const torch::Tensor& embeddings, int step,
                        UnrolledKeys& unrolled);
  // One pass over the rows at `places`; shapes as in forward().
  torch::Tensor forward_among(const torch::Tensor& hidden, const torch::Tensor& embeddings,
                              const RowPlaces& places);

  // (n_sequences, n_rows, dim) -> (n_sequences, n_rows, draft vocabulary size)
  torch::Tensor logits(const torch::Tensor& hidden);

  torch::ScalarType type() const { return fc_->weight.scalar_type(); }

 private:
  // The first layer. The attention mask is `mask` (n_rows, n_rows) together with `unrolled`.
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
  torch::Tensor mask_hidden_;  // (1, 1, 3 dim), if has_mask
};
TORCH_MODULE(Eagle3Head);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_MODULES_EAGLE3_MODULE_H_
