// SPDX-License-Identifier: Apache-2.0
#include "train/fused/fused_loops.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/float16.h"

// Each loop is compiled for three kinds of machine, and the loader selects the best for this one.
// Unlike the engine's kernel tables, training does not need equal bits on all of them.
#if defined(__x86_64__) && !defined(__clang__)
#define OUTRIDER_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define OUTRIDER_CLONES
#endif
#define OUTRIDER_INLINE [[gnu::always_inline]] inline

namespace outrider::train::loops {
namespace {

OUTRIDER_INLINE float read(const float* from) { return *from; }
OUTRIDER_INLINE float read(const Bf16* from) { return to_float(*from); }
OUTRIDER_INLINE void write(float value, float* to) { *to = value; }
OUTRIDER_INLINE void write(float value, Bf16* to) { *to = to_bf16(value); }

// e^x to 2 ulp by Cephes' polynomial (expf), without a branch, for vectorised loops. Below -87 and
// above 88 it keeps the values at these ends, 1.6e-38 and 1.7e38, which serve as zero and infinity
// here. NaN is passed on.
OUTRIDER_INLINE float exponential(float x) {
  constexpr float kLog2E = 1.44269504088896341F;
  constexpr float kLn2High = 0.693359375F;
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kRounding = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float bounded = x < -87.0F ? -87.0F : (x > 88.0F ? 88.0F : x);
  const float shifted = bounded * kLog2E + kRounding;
  const float n = shifted - kRounding;
  const float r = (bounded - n * kLn2High) - n * kLn2Low;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  const float fraction = p * r * r + r + 1.0F;
  const std::uint32_t exponent = (std::bit_cast<std::uint32_t>(shifted) - 0x4b400000U + 127U)
                                 << 23U;
  return fraction * std::bit_cast<float>(exponent);
}

// e^x, or 0 if negligible: its factor may be infinite.
OUTRIDER_INLINE float exponential_or_zero(float x) { return x < -87.0F ? 0.0F : exponential(x); }

// Shared by both types: f32 or bf16 in, f32 or bf16 out.
template <typename Body>
OUTRIDER_INLINE void with_type(ConstValues values, Body body) {
  if (values.is_bf16) {
    body(static_cast<const Bf16*>(values.data));
  } else {
    body(static_cast<const float*>(values.data));
  }
}
template <typename Body>
OUTRIDER_INLINE void with_type(Values values, Body body) {
  if (values.is_bf16) {
    body(static_cast<Bf16*>(values.data));
  } else {
    body(static_cast<float*>(values.data));
  }
}
template <typename Element>
OUTRIDER_INLINE const Element* same_type(ConstValues values, const Element*) {
  return static_cast<const Element*>(values.data);
}
template <typename Element>
OUTRIDER_INLINE Element* same_type(Values values, const Element*) {
  return static_cast<Element*>(values.data);
}

// From a token's heads side by side to each head's tokens, or, if kBack, in the other direction.
template <bool kBack, typename Element>
OUTRIDER_INLINE void turn(const Element* in, const HeadShape& shape, const float* cosines,
                          const float* sines, float scale, std::int64_t first, std::int64_t last,
                          Element* out) {
  const std::int64_t half = shape.dim / 2;
  const float sign = kBack ? -1.0F : 1.0F;
  for (std::int64_t token = first; token < last; ++token) {
    const std::int64_t sequence = token / shape.n_tokens;
    const std::int64_t place = token % shape.n_tokens;
    const float* cosine = cosines + place * half;
    const float* sine = sines + place * half;
    for (std::int64_t head = 0; head < shape.n_heads; ++head) {
      const std::int64_t by_token = (token * shape.n_heads + head) * shape.dim;
      const std::int64_t by_head =
          ((sequence * shape.n_heads + head) * shape.n_tokens + place) * shape.dim;
      const Element* from = in + (kBack ? by_head : by_token);
      Element* to = out + (kBack ? by_token : by_head);
#pragma omp simd
      for (std::int64_t i = 0; i < half; ++i) {
        const float left = read(from + i);
        const float right = read(from + half + i);
        const float turned = sign * sine[i];
        write((left * cosine[i] - right * turned) * scale, to + i);
        write((right * cosine[i] + left * turned) * scale, to + half + i);
      }
    }
  }
}

}  // namespace

OUTRIDER_CLONES void rms_norm(const float* x, const float* weight, std::int64_t first,
                              std::int64_t last, std::int64_t dim, float epsilon, Values y,
                              float* inverse) {
  with_type(
      y, [&](auto* out) __attribute__((always_inline)) {
        for (std::int64_t row = first; row < last; ++row) {
          const float* in = x + row * dim;
          float squares = 0;
#pragma omp simd reduction(+ : squares)
          for (std::int64_t i = 0; i < dim; ++i) squares += in[i] * in[i];
          const float factor = 1.0F / std::sqrt(squares / static_cast<float>(dim) + epsilon);
          inverse[row] = factor;
          auto* to = out + row * dim;
#pragma omp simd
          for (std::int64_t i = 0; i < dim; ++i) write(in[i] * factor * weight[i], to + i);
        }
      });
}

OUTRIDER_CLONES void rms_norm_gradient(const float* x, const float* weight, const float* inverse,
                                       ConstValues grad, std::int64_t first, std::int64_t last,
                                       std::int64_t dim, float* grad_x) {
  with_type(
      grad, [&](const auto* gradient) __attribute__((always_inline)) {
        for (std::int64_t row = first; row < last; ++row) {
          const float* in = x + row * dim;
          const auto* g = gradient + row * dim;
          float along = 0;
#pragma omp simd reduction(+ : along)
          for (std::int64_t i = 0; i < dim; ++i) along += read(g + i) * weight[i] * in[i];
          const float factor = inverse[row];
          const float back = along * factor * factor * factor / static_cast<float>(dim);
          float* out = grad_x + row * dim;
#pragma omp simd
          for (std::int64_t i = 0; i < dim; ++i) {
            out[i] = read(g + i) * weight[i] * factor - in[i] * back;
          }
        }
      });
}

OUTRIDER_CLONES void rms_norm_weight_gradient(const float* x, const float* inverse,
                                              ConstValues grad, std::int64_t n_rows,
                                              std::int64_t dim, std::int64_t first,
                                              std::int64_t last, float* grad_weight) {
  with_type(
      grad, [&](const auto* gradient) __attribute__((always_inline)) {
        for (std::int64_t i = first; i < last; ++i) grad_weight[i] = 0;
        for (std::int64_t row = 0; row < n_rows; ++row) {
          const float* in = x + row * dim;
          const auto* g = gradient + row * dim;
          const float factor = inverse[row];
#pragma omp simd
          for (std::int64_t i = first; i < last; ++i)
            grad_weight[i] += read(g + i) * in[i] * factor;
        }
      });
}

OUTRIDER_CLONES void turn_heads(ConstValues x, const HeadShape& shape, const float* cosines,
                                const float* sines, float scale, std::int64_t first,
                                std::int64_t last, Values y) {
  with_type(
      x, [&](const auto* in) __attribute__((always_inline)) {
        turn<false>(in, shape, cosines, sines, scale, first, last, same_type(y, in));
      });
}

OUTRIDER_CLONES void turn_heads_gradient(ConstValues grad, const HeadShape& shape,
                                         const float* cosines, const float* sines, float scale,
                                         std::int64_t first, std::int64_t last, Values grad_x) {
  with_type(
      grad, [&](const auto* in) __attribute__((always_inline)) {
        turn<true>(in, shape, cosines, sines, scale, first, last, same_type(grad_x, in));
      });
}

OUTRIDER_CLONES void causal_softmax(ConstValues scores, std::int64_t n_tokens, std::int64_t n_keys,
                                    std::int64_t first, std::int64_t last, Values shares) {
  with_type(
      scores, [&](const auto* in) __attribute__((always_inline)) {
        auto* const out = same_type(shares, in);
        std::vector<float> powers(static_cast<std::size_t>(n_keys));
        float* const power = powers.data();
        for (std::int64_t row = first; row < last; ++row) {
          const std::int64_t n_seen = n_keys - n_tokens + row % n_tokens + 1;
          const auto* from = in + row * n_keys;
          auto* to = out + row * n_keys;
          float highest = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : highest)
          for (std::int64_t i = 0; i < n_seen; ++i) {
            const float score = read(from + i);
            highest = score > highest ? score : highest;
          }
          float sum = 0;
#pragma omp simd reduction(+ : sum)
          for (std::int64_t i = 0; i < n_seen; ++i) {
            power[i] = exponential(read(from + i) - highest);
            sum += power[i];
          }
          const float factor = 1.0F / sum;
#pragma omp simd
          for (std::int64_t i = 0; i < n_seen; ++i) write(power[i] * factor, to + i);
          for (std::int64_t i = n_seen; i < n_keys; ++i) write(0.0F, to + i);
        }
      });
}

OUTRIDER_CLONES void causal_softmax_gradient(ConstValues shares, ConstValues grad,
                                             std::int64_t n_tokens, std::int64_t n_keys,
                                             std::int64_t first, std::int64_t last,
                                             Values grad_scores) {
  with_type(
      shares, [&](const auto* share) __attribute__((always_inline)) {
        const auto* const gradient = same_type(grad, share);
        auto* const out = same_type(grad_scores, share);
        for (std::int64_t row = first; row < last; ++row) {
          const std::int64_t n_seen = n_keys - n_tokens + row % n_tokens + 1;
          const auto* s = share + row * n_keys;
          const auto* g = gradient + row * n_keys;
          auto* to = out + row * n_keys;
          float along = 0;
#pragma omp simd reduction(+ : along)
          for (std::int64_t i = 0; i < n_seen; ++i) along += read(s + i) * read(g + i);
#pragma omp simd
          for (std::int64_t i = 0; i < n_seen; ++i) {
            write(read(s + i) * (read(g + i) - along), to + i);
          }
          for (std::int64_t i = n_seen; i < n_keys; ++i) write(0.0F, to + i);
        }
      });
}

OUTRIDER_CLONES void silu_multiply(ConstValues gate, ConstValues up, std::int64_t first,
                                   std::int64_t last, Values y) {
  with_type(
      gate, [&](const auto* in) __attribute__((always_inline)) {
        const auto* const factor = same_type(up, in);
        auto* const out = same_type(y, in);
#pragma omp simd
        for (std::int64_t i = first; i < last; ++i) {
          const float g = read(in + i);
          write(g / (1.0F + exponential(-g)) * read(factor + i), out + i);
        }
      });
}

OUTRIDER_CLONES void silu_multiply_gradient(ConstValues gate, ConstValues up, ConstValues grad,
                                            std::int64_t first, std::int64_t last, Values grad_gate,
                                            Values grad_up) {
  with_type(
      gate, [&](const auto* in) __attribute__((always_inline)) {
        const auto* const factor = same_type(up, in);
        const auto* const gradient = same_type(grad, in);
        auto* const to_gate = same_type(grad_gate, in);
        auto* const to_up = same_type(grad_up, in);
#pragma omp simd
        for (std::int64_t i = first; i < last; ++i) {
          const float x = read(in + i);
          const float g = read(gradient + i);
          const float sigmoid = 1.0F / (1.0F + exponential(-x));
          write(g * read(factor + i) * sigmoid * (1.0F + x * (1.0F - sigmoid)), to_gate + i);
          write(g * x * sigmoid, to_up + i);
        }
      });
}

OUTRIDER_CLONES void add_narrow(const float* x, ConstValues y, std::int64_t first,
                                std::int64_t last, float* sum) {
  with_type(
      y, [&](const auto* in) __attribute__((always_inline)) {
#pragma omp simd
        for (std::int64_t i = first; i < last; ++i) sum[i] = x[i] + read(in + i);
      });
}

OUTRIDER_CLONES void cross_entropy(ConstValues logits, const std::int64_t* tokens,
                                   std::int64_t n_classes, std::int64_t first, std::int64_t last,
                                   float* losses, float* log_sums) {
  with_type(
      logits, [&](const auto* in) __attribute__((always_inline)) {
        for (std::int64_t row = first; row < last; ++row) {
          const auto* from = in + row * n_classes;
          float highest = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : highest)
          for (std::int64_t i = 0; i < n_classes; ++i) {
            const float logit = read(from + i);
            highest = logit > highest ? logit : highest;
          }
          float sum = 0;
#pragma omp simd reduction(+ : sum)
          for (std::int64_t i = 0; i < n_classes; ++i) sum += exponential(read(from + i) - highest);
          log_sums[row] = std::log(sum) + highest;
          losses[row] = log_sums[row] - read(from + tokens[row]);
        }
      });
}

OUTRIDER_CLONES void cross_entropy_gradient(ConstValues logits, const std::int64_t* tokens,
                                            const float* log_sums, const float* grad,
                                            std::int64_t n_classes, std::int64_t first,
                                            std::int64_t last, Values grad_logits) {
  with_type(
      logits, [&](const auto* in) __attribute__((always_inline)) {
        auto* const out = same_type(grad_logits, in);
        for (std::int64_t row = first; row < last; ++row) {
          const auto* from = in + row * n_classes;
          auto* to = out + row * n_classes;
          const float log_sum = log_sums[row];
          const float factor = grad[row];
#pragma omp simd
          for (std::int64_t i = 0; i < n_classes; ++i) {
            write(exponential(read(from + i) - log_sum) * factor, to + i);
          }
          const float share = exponential(read(from + tokens[row]) - log_sum);
          write((share - 1.0F) * factor, to + tokens[row]);
        }
      });
}

OUTRIDER_CLONES void compare_distributions(ConstValues logits, const float* target_logits,
                                           std::int64_t n_classes, std::int64_t first,
                                           std::int64_t last, const DistributionRowsOut& out) {
  with_type(
      logits, [&](const auto* in) __attribute__((always_inline)) {
        for (std::int64_t row = first; row < last; ++row) {
          const auto* from = in + row * n_classes;
          const float* target = target_logits + row * n_classes;
          float highest = -std::numeric_limits<float>::infinity();
          float target_highest = highest;
#pragma omp simd reduction(max : highest, target_highest)
          for (std::int64_t i = 0; i < n_classes; ++i) {
            const float logit = read(from + i);
            highest = logit > highest ? logit : highest;
            target_highest = target[i] > target_highest ? target[i] : target_highest;
          }
          float sum = 0;
          float target_sum = 0;
          float cross = 0;
          float own = 0;
#pragma omp simd reduction(+ : sum, target_sum, cross, own)
          for (std::int64_t i = 0; i < n_classes; ++i) {
            const float logit = read(from + i) - highest;
            const float target_logit = target[i] - target_highest;
            const float share = exponential_or_zero(target_logit);
            sum += exponential(logit);
            target_sum += share;
            cross += share > 0 ? share * logit : 0.0F;
            own += share > 0 ? share * target_logit : 0.0F;
          }
          const float log_sum = std::log(sum);
          const float target_log_sum = std::log(target_sum);
          float overlap = 0;
#pragma omp simd reduction(+ : overlap)
          for (std::int64_t i = 0; i < n_classes; ++i) {
            const float prob = exponential_or_zero(read(from + i) - highest - log_sum);
            const float target_prob =
                exponential_or_zero(target[i] - target_highest - target_log_sum);
            overlap += target_prob < prob ? target_prob : prob;
          }
          out.cross_entropies[row] = log_sum - cross / target_sum;
          out.entropies[row] = target_log_sum - own / target_sum;
          out.overlaps[row] = overlap;
          out.log_sums[row] = log_sum + highest;
          out.target_log_sums[row] = target_log_sum + target_highest;
        }
      });
}

OUTRIDER_CLONES void compare_distributions_gradient(ConstValues logits, const float* target_logits,
                                                    const float* log_sums,
                                                    const float* target_log_sums, const float* grad,
                                                    std::int64_t n_classes, std::int64_t first,
                                                    std::int64_t last, Values grad_logits) {
  with_type(
      logits, [&](const auto* in) __attribute__((always_inline)) {
        auto* const out = same_type(grad_logits, in);
        for (std::int64_t row = first; row < last; ++row) {
          const auto* from = in + row * n_classes;
          const float* target = target_logits + row * n_classes;
          auto* to = out + row * n_classes;
          const float log_sum = log_sums[row];
          const float target_log_sum = target_log_sums[row];
          const float factor = grad[row];
#pragma omp simd
          for (std::int64_t i = 0; i < n_classes; ++i) {
            const float prob = exponential_or_zero(read(from + i) - log_sum);
            const float target_prob = exponential_or_zero(target[i] - target_log_sum);
            write((prob - target_prob) * factor, to + i);
          }
        }
      });
}

}  // namespace outrider::train::loops
