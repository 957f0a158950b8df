#include "train/losses.h"

namespace outrider::train {

using torch::Tensor;

Tensor weighted_mean(const Tensor& row_losses, const Tensor& weights) {
  const Tensor sum = weights.sum();
  return (row_losses * weights).sum() / torch::where(sum > 0, sum, torch::ones_like(sum));
}

Tensor cross_entropy_rows(const Tensor& logits, const Tensor& tokens) {
  return -torch::log_softmax(logits, -1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1);
}

}  // namespace outrider::train
