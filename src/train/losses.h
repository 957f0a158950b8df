// The losses of the trainer, over rows of logits. Those of tokens and of a target's law,
// cross_entropy_rows() and compare_laws(), are among the fused steps.
#ifndef OUTRIDER_TRAIN_LOSSES_H_
#define OUTRIDER_TRAIN_LOSSES_H_

#include <torch/torch.h>

#include "train/divergence.h"
#include "train/fused_steps.h"

namespace outrider::train {

// Mean over rows, weighted: sum w_i l_i / sum w_i. weights (n), any; zero rows do not count. The
// result is 0 where all weights are.
torch::Tensor weighted_mean(const torch::Tensor& row_losses, const torch::Tensor& weights);

// Per row, nats (total variation: a share). draft_logits, target_logits (n, vocabulary) -> (n).
// Gradients flow into draft_logits; a target's minus infinity is a probability of 0, and reverse KL
// is infinite where the drafter gives it any.
torch::Tensor divergence_rows(Divergence divergence, const torch::Tensor& draft_logits,
                              const torch::Tensor& target_logits);

// Both per row, from one look at the laws. The overlap, sum over tokens of min(target_prob,
// draft_prob), is the expected acceptance of one drafted token at temperature 1 (Leviathan et al.
// 2023, theorem 3.5).
struct Judged {
  torch::Tensor divergence;
  torch::Tensor overlap;  // without gradients
};
Judged judge_rows(Divergence divergence, const torch::Tensor& draft_logits,
                  const torch::Tensor& target_logits);

// A law over "one of these tokens, or any other": the log-probabilities of the listed tokens and,
// in a last column, of all others together. logits (n, vocabulary), ids (n, k) int64, distinct in a
// row
// -> (n, k + 1), or (n, k) where k is the whole vocabulary. A divergence or an overlap of two laws
// coarsened alike bounds that of the laws themselves, from below and from above (the
// data-processing inequality of f-divergences), and equals it where all tokens are listed.
torch::Tensor coarsened_logprobs(const torch::Tensor& logits, const torch::Tensor& ids);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_LOSSES_H_
