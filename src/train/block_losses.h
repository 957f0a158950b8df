// The losses of heads that draft a block, over its slots. Of n slots, slot 0 says the token right
// behind the anchor.
#ifndef OUTRIDER_TRAIN_BLOCK_LOSSES_H_
#define OUTRIDER_TRAIN_BLOCK_LOSSES_H_

#include <torch/torch.h>

#include <cstdint>

namespace outrider::train {

// (n_slots): exp(-k / gamma) of slot k = 0 .. n_slots - 1 (DFlash, arXiv 2602.06036, appendix A.1:
// an early token that is wrong makes the later ones worthless).
torch::Tensor decaying_weights(std::int64_t n_slots, double gamma,
                               const torch::TensorOptions& like);

// D-PACE (arXiv 2605.18810): with s_k = (1 - alpha) exp(-loss_k) + alpha, and 1 at slots that do
// not count, and P_k the product of s_0 .. s_k: the sum of P_m over the slots m >= k that count.
// That is the derivative of the expected number of accepted tokens, which alpha keeps from
// vanishing behind a slot that is wrong. token_losses (..., n_slots), counts (..., n_slots)
// boolean -> (..., n_slots), without gradients and in their type; 0 at slots that do not count.
inline constexpr double kDPaceAlpha = 0.5;  // the paper's
torch::Tensor d_pace_weights(const torch::Tensor& token_losses, const torch::Tensor& counts,
                             double alpha = kDPaceAlpha);

// sum over x of |draft_prob - target_prob| of every row: twice the chance that a token drawn from
// the draft is rejected. logits (..., n), target_logits (..., n) -> (...). Gradients flow into
// logits.
torch::Tensor law_distance(const torch::Tensor& logits, const torch::Tensor& target_logits);

// The expected number of tokens that are accepted before the first rejection, where slot k is
// accepted with that probability if those before it are: sum over k of the product of
// probs_0 .. probs_k. probs (..., n_slots), 0 where a slot does not count -> (...).
torch::Tensor accepted_length(const torch::Tensor& probs);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_BLOCK_LOSSES_H_
