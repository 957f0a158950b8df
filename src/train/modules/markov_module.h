// SPDX-License-Identifier: Apache-2.0
// The Markov head, which makes each slot of a block depend on the slot before, for training:
// model/heads/markov_head.h with gradients. The token before each slot is the text's (teacher
// forcing).
#ifndef OUTRIDER_TRAIN_MODULES_MARKOV_MODULE_H_
#define OUTRIDER_TRAIN_MODULES_MARKOV_MODULE_H_

#include <torch/torch.h>

#include "model/heads/block_head_config.h"
#include "train/modules/products.h"

namespace outrider::train {

class MarkovModuleImpl : public torch::nn::Module {
 public:
  // dim: the width of the slots' outputs.
  MarkovModuleImpl(BlockHeadConfig::Markov::Form form, int rank, int dim, int vocabulary_size,
                   Products products);

  struct Given {
    torch::Tensor logits;      // (n_blocks, n_slots, vocabulary_size), to be added
    torch::Tensor confidence;  // (n_blocks, n_slots), before the sigmoid
  };
  // given (n_blocks, n_slots, dim): the slots' outputs. before (n_blocks, n_slots) int64: the token
  // before each slot.
  Given forward(const torch::Tensor& given, const torch::Tensor& before);

 private:
  torch::Tensor recurrent(const torch::Tensor& given, const torch::Tensor& embedded);

  BlockHeadConfig::Markov::Form form_;
  Products products_;
  torch::nn::Embedding before_{nullptr};  // W1
  torch::nn::Linear after_{nullptr};      // W2
  torch::nn::Linear joint_{nullptr};      // of a gate or a recurrent state; null of vanilla
  torch::nn::Linear confidence_{nullptr};
};
TORCH_MODULE(MarkovModule);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_MODULES_MARKOV_MODULE_H_
