// SPDX-License-Identifier: Apache-2.0
// Steps of a layer with gradients. On the processor, in f32 and bf16, each step is one pass over
// memory (fused_loops.h). For doubles and on a GPU, libtorch's own operations are used. Between
// bf16 products a step reads and writes bf16 and computes in f32. Second derivatives are not
// implemented; the steps throw if asked for them.
#ifndef OUTRIDER_TRAIN_FUSED_FUSED_STEPS_H_
#define OUTRIDER_TRAIN_FUSED_FUSED_STEPS_H_

#include <torch/torch.h>

#include <cstdint>

namespace outrider::train {

// Cosines and sines of the rotation angles of consecutive positions, (n_tokens, head_dim / 2) each.
struct Rotation {
  torch::Tensor cosines;
  torch::Tensor sines;
};

// x (..., dim) * weight (dim) / sqrt(mean(x^2) + epsilon), in `type`. Zhang and Sennrich, "Root
// Mean Square Layer Normalization" (2019), with epsilon as in Llama.
torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double epsilon,
                       torch::ScalarType type);

// x (n_sequences, n_tokens, n_heads * head_dim) -> (n_sequences, n_heads, n_tokens, head_dim). Each
// head is rotated by its token's angles and multiplied by scale. A rotated pair is (i, i + head_dim
// / 2), the layout of Hugging Face's checkpoints.
torch::Tensor turned_heads(const torch::Tensor& x, std::int64_t n_heads, const Rotation& rotation,
                           double scale);

// The causal softmax of scores (..., n_tokens, n_keys). The last n_tokens keys belong to the tokens
// themselves; no token attends to a later one.
torch::Tensor causal_softmax(const torch::Tensor& scores);

// silu(gate) * up.
torch::Tensor silu_multiply(const torch::Tensor& gate, const torch::Tensor& up);

// stream + part, in the type of stream.
torch::Tensor stream_sum(const torch::Tensor& stream, const torch::Tensor& part);

// -log softmax(logits)[token] of every row: logits (..., n_classes), tokens (...) int64 -> (...),
// in f32 if logits are bf16.
torch::Tensor cross_entropy_rows(const torch::Tensor& logits, const torch::Tensor& tokens);

// A comparison of two distributions over the same classes, row by row.
struct DistributionRows {
  torch::Tensor cross_entropy;  // -sum target_prob log prob, with gradients to the logits
  torch::Tensor entropy;        // -sum target_prob log target_prob: forward KL is their difference
  torch::Tensor overlap;        // sum min(prob, target_prob)
};
// logits, target_logits (..., n_classes) -> (...), in f32 if logits are bf16. A target logit of
// minus infinity is a probability of 0.
DistributionRows compare_distributions(const torch::Tensor& logits,
                                       const torch::Tensor& target_logits);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_FUSED_FUSED_STEPS_H_
