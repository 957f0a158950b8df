// SPDX-License-Identifier: Apache-2.0
#include "train/losses/block_losses.h"

namespace outrider::train {

using torch::Tensor;

Tensor decaying_weights(std::int64_t n_slots, double gamma, const torch::TensorOptions& like) {
  return torch::exp(torch::arange(n_slots, like) / -gamma);
}

Tensor d_pace_weights(const Tensor& token_losses, const Tensor& counts, double alpha) {
  const torch::NoGradGuard no_grad;
  const Tensor smoothed = (1 - alpha) * torch::exp(-token_losses) + alpha;
  const Tensor reach = smoothed.masked_fill(counts.logical_not(), 1).cumprod(-1) * counts;
  return reach.flip(-1).cumsum(-1).flip(-1) * counts;
}

Tensor l1_distance(const Tensor& logits, const Tensor& target_logits) {
  const Tensor target_prob = torch::softmax(target_logits.detach(), -1);
  return (torch::softmax(logits, -1) - target_prob).abs().sum(-1);
}

Tensor accepted_length(const Tensor& probs) { return probs.cumprod(-1).sum(-1); }

}  // namespace outrider::train
