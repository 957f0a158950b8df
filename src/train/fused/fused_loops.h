// SPDX-License-Identifier: Apache-2.0
// Loops over rows of f32 or bf16 for training. Each loop is one step of a layer or its gradient in
// one pass over memory; libtorch's own operations take one pass for every arithmetic step. Sums
// within a row are f32. Their order depends only on the row's length and the machine's vector
// width, so a run is reproducible bit for bit. Inputs and outputs may not overlap.
#ifndef OUTRIDER_TRAIN_FUSED_FUSED_LOOPS_H_
#define OUTRIDER_TRAIN_FUSED_FUSED_LOOPS_H_

#include <cstdint>

namespace outrider::train::loops {

// Contiguous elements.
struct Values {
  void* data;
  bool is_bf16;  // otherwise f32
};
struct ConstValues {
  const void* data;
  bool is_bf16;
};

// Rows [first, last) of (n_rows, dim): y = x * weight / sqrt(mean(x^2) + epsilon). Writes the
// values of 1 / sqrt() to inverse (n_rows).
void rms_norm(const float* x, const float* weight, std::int64_t first, std::int64_t last,
              std::int64_t dim, float epsilon, Values y, float* inverse);
// The gradient of rms_norm with respect to x.
void rms_norm_gradient(const float* x, const float* weight, const float* inverse, ConstValues grad,
                       std::int64_t first, std::int64_t last, std::int64_t dim, float* grad_x);
// Columns [first, last) of its gradient with respect to the weight, over all rows.
void rms_norm_weight_gradient(const float* x, const float* inverse, ConstValues grad,
                              std::int64_t n_rows, std::int64_t dim, std::int64_t first,
                              std::int64_t last, float* grad_weight);

// Copies tokens [first, last) of x (n_sequences, n_tokens, n_heads, dim) to y (n_sequences,
// n_heads, n_tokens, dim). Rotates the pairs (i, i + dim / 2) by the angles (n_tokens, dim / 2) and
// multiplies all elements by scale. Tokens are numbered across all sequences.
struct HeadShape {
  std::int64_t n_tokens;
  std::int64_t n_heads;
  std::int64_t dim;
};
void turn_heads(ConstValues x, const HeadShape& shape, const float* cosines, const float* sines,
                float scale, std::int64_t first, std::int64_t last, Values y);
// The gradient with respect to x: the inverse rotation.
void turn_heads_gradient(ConstValues grad, const HeadShape& shape, const float* cosines,
                         const float* sines, float scale, std::int64_t first, std::int64_t last,
                         Values grad_x);

// Softmax of rows [first, last) of scores (n_rows, n_keys), one row per query. Each n_tokens
// consecutive rows are the queries of consecutive tokens. Query t of them attends to the first
// n_keys - n_tokens + t + 1 keys; the shares of the other keys are 0.
void causal_softmax(ConstValues scores, std::int64_t n_tokens, std::int64_t n_keys,
                    std::int64_t first, std::int64_t last, Values shares);
void causal_softmax_gradient(ConstValues shares, ConstValues grad, std::int64_t n_tokens,
                             std::int64_t n_keys, std::int64_t first, std::int64_t last,
                             Values grad_scores);

// Elements [first, last) of gate / (1 + exp(-gate)) * up; all of one type.
void silu_multiply(ConstValues gate, ConstValues up, std::int64_t first, std::int64_t last,
                   Values y);
void silu_multiply_gradient(ConstValues gate, ConstValues up, ConstValues grad, std::int64_t first,
                            std::int64_t last, Values grad_gate, Values grad_up);

// Elements [first, last) of x + y.
void add_narrow(const float* x, ConstValues y, std::int64_t first, std::int64_t last, float* sum);

// Rows [first, last) of logits (n_rows, n_classes): losses = -log softmax(logits)[token], log_sums
// = the logarithm of the sum of exponentials. Every token is below n_classes.
void cross_entropy(ConstValues logits, const std::int64_t* tokens, std::int64_t n_classes,
                   std::int64_t first, std::int64_t last, float* losses, float* log_sums);
void cross_entropy_gradient(ConstValues logits, const std::int64_t* tokens, const float* log_sums,
                            const float* grad, std::int64_t n_classes, std::int64_t first,
                            std::int64_t last, Values grad_logits);

// Compares rows [first, last) of two distributions over n_classes, both given as logits, the
// target's in f32. Returns the results of compare_distributions() in fused_steps.h, and the
// logarithms of both sums of exponentials. A target logit of minus infinity is a probability of 0.
struct DistributionRowsOut {
  float* cross_entropies;
  float* entropies;
  float* overlaps;
  float* log_sums;
  float* target_log_sums;
};
void compare_distributions(ConstValues logits, const float* target_logits, std::int64_t n_classes,
                           std::int64_t first, std::int64_t last, const DistributionRowsOut& out);
// The gradient of the cross-entropies.
void compare_distributions_gradient(ConstValues logits, const float* target_logits,
                                    const float* log_sums, const float* target_log_sums,
                                    const float* grad, std::int64_t n_classes, std::int64_t first,
                                    std::int64_t last, Values grad_logits);

}  // namespace outrider::train::loops

#endif  // OUTRIDER_TRAIN_FUSED_FUSED_LOOPS_H_
