// SPDX-License-Identifier: Apache-2.0
// The trainer's losses over rows of logits, as tensors on any device. cross_entropy_rows() and
// compare_distributions() are in fused_steps.h. Shapes are not checked.
#ifndef OUTRIDER_TRAIN_LOSSES_LOSSES_H_
#define OUTRIDER_TRAIN_LOSSES_LOSSES_H_

#include <torch/torch.h>

#include "train/fused/fused_steps.h"
#include "train/losses/divergence.h"

namespace outrider::train {

// Weighted mean over rows: sum w_i l_i / sum w_i, a scalar. row_losses and weights have the same
// shape; weights are 0 or more. 0 if all weights are 0. Losses must be finite even where the weight
// is 0: 0 times infinity is NaN. These rows are not masked, because the gradient of an infinite row
// can be NaN at any weight; a NaN loss ends the training before its gradient is used.
torch::Tensor weighted_mean(const torch::Tensor& row_losses, const torch::Tensor& weights);

// The divergence of each row, in nats (total variation: from 0 to 1). draft_logits, target_logits
// (n, vocabulary) -> (n). Gradients flow into draft_logits; target_logits must require none. A
// target logit of minus infinity is a probability of 0; reverse KL is infinite if the drafter gives
// such a token any probability.
torch::Tensor divergence_rows(Divergence divergence, const torch::Tensor& draft_logits,
                              const torch::Tensor& target_logits);

// Divergence and overlap of each row, computed together. The overlap, sum over tokens of
// min(target_prob, draft_prob), is the expected acceptance of one drafted token at temperature 1
// (Leviathan et al. 2023, theorem 3.5).
struct Judged {
  torch::Tensor divergence;
  torch::Tensor overlap;  // without gradients
};
Judged judge_rows(Divergence divergence, const torch::Tensor& draft_logits,
                  const torch::Tensor& target_logits);

// Log-probabilities of the listed tokens and, in a last column, of all other tokens together, with
// gradients to the logits. logits (n, vocabulary), ids (n, k) int64, distinct within a row. Returns
// (n, k + 1), or (n, k) if k is the whole vocabulary. For two distributions coarsened in this way,
// a divergence is a lower bound of the uncoarsened one, and an overlap an upper bound (the
// data-processing inequality of f-divergences). Both are exact if all tokens are listed.
torch::Tensor coarsened_logprobs(const torch::Tensor& logits, const torch::Tensor& ids);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_LOSSES_LOSSES_H_
