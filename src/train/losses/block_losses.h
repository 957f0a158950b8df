// SPDX-License-Identifier: Apache-2.0
// Losses over the slots of heads that draft a block. Slot 0 predicts the token right after the
// anchor.
#ifndef OUTRIDER_TRAIN_LOSSES_BLOCK_LOSSES_H_
#define OUTRIDER_TRAIN_LOSSES_BLOCK_LOSSES_H_

#include <torch/torch.h>

#include <cstdint>

namespace outrider::train {

// (n_slots): exp(-k / gamma) of slot k = 0 .. n_slots - 1 (DFlash, arXiv 2602.06036, appendix A.1:
// a wrong early token makes the later ones worthless).
torch::Tensor decaying_weights(std::int64_t n_slots, double gamma,
                               const torch::TensorOptions& like);

// D-PACE weights (arXiv 2605.18810). Let s_k = (1 - alpha) exp(-loss_k) + alpha, and s_k = 1 at
// slots that do not count. Let P_k be the product of s_0 .. s_k. The weight of slot k is the sum of
// P_m over the slots m >= k that count. It is the derivative of the expected number of accepted
// tokens. alpha keeps it from vanishing after a wrong slot. token_losses (..., n_slots), counts
// (..., n_slots) boolean -> (..., n_slots), without gradients, of token_losses' type; 0 at slots
// that do not count.
inline constexpr double kDPaceAlpha = 0.5;  // the paper's
torch::Tensor d_pace_weights(const torch::Tensor& token_losses, const torch::Tensor& counts,
                             double alpha = kDPaceAlpha);

// sum over x of |draft_prob - target_prob| for every row: twice the probability that a token drawn
// from the draft is rejected. logits (..., n), target_logits (..., n) -> (...). Gradients flow into
// logits.
torch::Tensor l1_distance(const torch::Tensor& logits, const torch::Tensor& target_logits);

// The expected number of tokens accepted before the first rejection: the sum over k of the product
// of probs_0 .. probs_k. probs_k is the probability that slot k is accepted if all slots before it
// are. probs (..., n_slots), 0 where a slot does not count -> (...).
torch::Tensor accepted_length(const torch::Tensor& probs);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_LOSSES_BLOCK_LOSSES_H_
