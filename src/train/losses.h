// The losses of the trainer, over rows of logits.
#ifndef OUTRIDER_TRAIN_LOSSES_H_
#define OUTRIDER_TRAIN_LOSSES_H_

#include <torch/torch.h>

namespace outrider::train {

// Mean over rows, weighted: sum w_i l_i / sum w_i. weights (n), any; zero rows do not count. The
// result is 0 where all weights are.
torch::Tensor weighted_mean(const torch::Tensor& row_losses, const torch::Tensor& weights);

// -log softmax(logits)[token], per row. logits (n, vocabulary), tokens (n) int64 -> (n)
torch::Tensor cross_entropy_rows(const torch::Tensor& logits, const torch::Tensor& tokens);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_LOSSES_H_
