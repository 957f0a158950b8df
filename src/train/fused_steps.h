// Steps of a layer with gradients, each one pass over memory on the processor in f32 and bf16
// (fused_loops.h), and libtorch's own operations elsewhere: in doubles, on a GPU. Between products
// in bf16 a step reads and writes bf16 and computes in f32. There are no second derivatives, which
// the steps refuse.
#ifndef OUTRIDER_TRAIN_FUSED_STEPS_H_
#define OUTRIDER_TRAIN_FUSED_STEPS_H_

#include <torch/torch.h>

#include <cstdint>

namespace outrider::train {

// The angles of a stretch of positions, (n_tokens, head_dim / 2) each.
struct Rotation {
  torch::Tensor cosines;
  torch::Tensor sines;
};

// x (..., dim) * weight (dim) / sqrt(mean(x^2) + epsilon), in `type`. Zhang and Sennrich, "Root
// Mean Square Layer Normalization" (2019), with epsilon as Llama has it.
torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double epsilon,
                       torch::ScalarType type);

// x (n_sequences, n_tokens, n_heads * head_dim) -> (n_sequences, n_heads, n_tokens, head_dim), each
// head turned by its token's angles, with the halves of a rotated pair apart, as Hugging Face
// stores them, and multiplied by scale.
torch::Tensor turned_heads(const torch::Tensor& x, std::int64_t n_heads, const Rotation& rotation,
                           double scale);

// The softmax of scores (..., n_tokens, n_keys), where the last n_tokens keys are the tokens' own
// and no token sees a later one.
torch::Tensor causal_softmax(const torch::Tensor& scores);

// silu(gate) * up.
torch::Tensor silu_multiply(const torch::Tensor& gate, const torch::Tensor& up);

// stream + part, in the stream's type.
torch::Tensor stream_sum(const torch::Tensor& stream, const torch::Tensor& part);

// -log softmax(logits)[token] of every row: logits (..., n_classes), tokens (...) int64 -> (...),
// in f32 where logits are bf16.
torch::Tensor cross_entropy_rows(const torch::Tensor& logits, const torch::Tensor& tokens);

// Two laws over the same classes side by side, row by row.
struct LawRows {
  torch::Tensor cross_entropy;  // -sum target_prob log prob, with gradients to the logits
  torch::Tensor entropy;        // -sum target_prob log target_prob: forward KL is their difference
  torch::Tensor overlap;        // sum min(prob, target_prob)
};
// logits, target_logits (..., n_classes) -> (...), f32 where logits are bf16. A target's minus
// infinity is a probability of 0.
LawRows compare_laws(const torch::Tensor& logits, const torch::Tensor& target_logits);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_FUSED_STEPS_H_
