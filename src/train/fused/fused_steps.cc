// SPDX-License-Identifier: Apache-2.0
#include "train/fused/fused_steps.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <limits>

#include "train/fused/fused_loops.h"

namespace outrider::train {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;

// Elements per thread at least: the work of some ten microseconds.
constexpr std::int64_t kGrain = 32'768;

bool is_fused(const Tensor& x) {
  return x.device().is_cpu() &&
         (x.scalar_type() == torch::kFloat32 || x.scalar_type() == torch::kBFloat16);
}

loops::ConstValues values_of(const Tensor& x) {
  return {x.data_ptr(), x.scalar_type() == torch::kBFloat16};
}
loops::Values written(Tensor& x) { return {x.data_ptr(), x.scalar_type() == torch::kBFloat16}; }

// The type in which libtorch's own operations compute: they would round every step to bf16.
Tensor widened(const Tensor& x) {
  return x.scalar_type() == torch::kBFloat16 ? x.to(torch::kFloat32) : x;
}

// Second derivatives are not implemented and would silently be zero.
void refuse_second_derivatives() {
  TORCH_CHECK(!torch::GradMode::is_enabled(), "training steps have no second derivative");
}

// Calls body(first, last) over n items with that many elements each.
template <typename Body>
void in_parallel(std::int64_t n, std::int64_t elements, const Body& body) {
  at::parallel_for(0, n, std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, elements)),
                   body);
}

struct RmsNormStep : Function<RmsNormStep> {
  static Tensor forward(AutogradContext* context, const Tensor& given, const Tensor& weight,
                        double epsilon, torch::ScalarType type) {
    const Tensor x = given.contiguous();
    const std::int64_t dim = x.size(-1);
    const std::int64_t n_rows = x.numel() / dim;
    Tensor y = torch::empty(x.sizes(), x.options().dtype(type));
    Tensor inverse = torch::empty({n_rows}, x.options());
    in_parallel(n_rows, dim, [&](std::int64_t first, std::int64_t last) {
      loops::rms_norm(x.data_ptr<float>(), weight.data_ptr<float>(), first, last, dim,
                      static_cast<float>(epsilon), written(y), inverse.data_ptr<float>());
    });
    context->save_for_backward({x, weight, inverse});
    return y;
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    refuse_second_derivatives();
    const tensor_list saved = context->get_saved_variables();
    const Tensor& x = saved[0];
    const Tensor& weight = saved[1];
    const auto* inverse = saved[2].data_ptr<float>();
    const Tensor grad = grads[0].contiguous();
    const std::int64_t dim = x.size(-1);
    const std::int64_t n_rows = x.numel() / dim;
    Tensor grad_x;
    if (context->needs_input_grad(0)) {
      grad_x = torch::empty_like(x);
      in_parallel(n_rows, dim, [&](std::int64_t first, std::int64_t last) {
        loops::rms_norm_gradient(x.data_ptr<float>(), weight.data_ptr<float>(), inverse,
                                 values_of(grad), first, last, dim, grad_x.data_ptr<float>());
      });
    }
    Tensor grad_weight;
    if (context->needs_input_grad(1)) {
      // By columns: every sum is in the order of the rows, for any number of threads.
      grad_weight = torch::empty_like(weight);
      in_parallel(dim, n_rows, [&](std::int64_t first, std::int64_t last) {
        loops::rms_norm_weight_gradient(x.data_ptr<float>(), inverse, values_of(grad), n_rows, dim,
                                        first, last, grad_weight.data_ptr<float>());
      });
    }
    return {grad_x, grad_weight, Tensor(), Tensor()};
  }
};

struct TurnedHeadsStep : Function<TurnedHeadsStep> {
  static Tensor forward(AutogradContext* context, const Tensor& given, std::int64_t n_heads,
                        const Tensor& cosines, const Tensor& sines, double scale) {
    const Tensor x = given.contiguous();
    const loops::HeadShape shape{
        .n_tokens = x.size(1), .n_heads = n_heads, .dim = x.size(2) / n_heads};
    TORCH_CHECK(cosines.size(0) == x.size(1) && sines.size(0) == x.size(1), "angles of ",
                cosines.size(0), " positions for ", x.size(1), " tokens");
    Tensor y = torch::empty({x.size(0), n_heads, shape.n_tokens, shape.dim}, x.options());
    in_parallel(x.size(0) * x.size(1), x.size(2), [&](std::int64_t first, std::int64_t last) {
      loops::turn_heads(values_of(x), shape, cosines.data_ptr<float>(), sines.data_ptr<float>(),
                        static_cast<float>(scale), first, last, written(y));
    });
    context->save_for_backward({cosines, sines});
    context->saved_data["scale"] = scale;
    return y;
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    refuse_second_derivatives();
    const tensor_list saved = context->get_saved_variables();
    const Tensor grad = grads[0].contiguous();
    const auto scale = static_cast<float>(context->saved_data["scale"].toDouble());
    const loops::HeadShape shape{
        .n_tokens = grad.size(2), .n_heads = grad.size(1), .dim = grad.size(3)};
    Tensor grad_x =
        torch::empty({grad.size(0), shape.n_tokens, shape.n_heads * shape.dim}, grad.options());
    in_parallel(grad.size(0) * shape.n_tokens, grad_x.size(2),
                [&](std::int64_t first, std::int64_t last) {
                  loops::turn_heads_gradient(values_of(grad), shape, saved[0].data_ptr<float>(),
                                             saved[1].data_ptr<float>(), scale, first, last,
                                             written(grad_x));
                });
    return {grad_x, Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

struct CausalSoftmaxStep : Function<CausalSoftmaxStep> {
  static Tensor forward(AutogradContext* context, const Tensor& given) {
    const Tensor scores = given.contiguous();
    const std::int64_t n_keys = scores.size(-1);
    TORCH_CHECK(n_keys >= scores.size(-2), scores.size(-2), " tokens see ", n_keys, " keys");
    Tensor shares = torch::empty_like(scores);
    in_parallel(scores.numel() / n_keys, n_keys, [&](std::int64_t first, std::int64_t last) {
      loops::causal_softmax(values_of(scores), scores.size(-2), n_keys, first, last,
                            written(shares));
    });
    context->save_for_backward({shares});
    return shares;
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    refuse_second_derivatives();
    const Tensor shares = context->get_saved_variables()[0];
    const Tensor grad = grads[0].contiguous();
    const std::int64_t n_keys = shares.size(-1);
    Tensor grad_scores = torch::empty_like(shares);
    in_parallel(shares.numel() / n_keys, n_keys, [&](std::int64_t first, std::int64_t last) {
      loops::causal_softmax_gradient(values_of(shares), values_of(grad), shares.size(-2), n_keys,
                                     first, last, written(grad_scores));
    });
    return {grad_scores};
  }
};

struct SiluMultiplyStep : Function<SiluMultiplyStep> {
  static Tensor forward(AutogradContext* context, const Tensor& given_gate,
                        const Tensor& given_up) {
    const Tensor gate = given_gate.contiguous();
    const Tensor up = given_up.contiguous();
    Tensor y = torch::empty_like(gate);
    in_parallel(gate.numel(), 1, [&](std::int64_t first, std::int64_t last) {
      loops::silu_multiply(values_of(gate), values_of(up), first, last, written(y));
    });
    context->save_for_backward({gate, up});
    return y;
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    refuse_second_derivatives();
    const tensor_list saved = context->get_saved_variables();
    const Tensor grad = grads[0].contiguous();
    Tensor grad_gate = torch::empty_like(saved[0]);
    Tensor grad_up = torch::empty_like(saved[1]);
    in_parallel(grad.numel(), 1, [&](std::int64_t first, std::int64_t last) {
      loops::silu_multiply_gradient(values_of(saved[0]), values_of(saved[1]), values_of(grad),
                                    first, last, written(grad_gate), written(grad_up));
    });
    return {grad_gate, grad_up};
  }
};

// libtorch would widen the part in a separate pass.
struct StreamSumStep : Function<StreamSumStep> {
  static Tensor forward(AutogradContext*, const Tensor& stream, const Tensor& given) {
    const Tensor x = stream.contiguous();
    const Tensor part = given.contiguous();
    Tensor y = torch::empty_like(x);
    in_parallel(x.numel(), 1, [&](std::int64_t first, std::int64_t last) {
      loops::add_narrow(x.data_ptr<float>(), values_of(part), first, last, y.data_ptr<float>());
    });
    return y;
  }
  static tensor_list backward(AutogradContext*, const tensor_list& grads) {
    refuse_second_derivatives();
    return {grads[0], grads[0].to(torch::kBFloat16)};
  }
};

struct CrossEntropyStep : Function<CrossEntropyStep> {
  static Tensor forward(AutogradContext* context, const Tensor& given, const Tensor& given_tokens) {
    const Tensor logits = given.contiguous();
    const Tensor tokens = given_tokens.contiguous();
    const std::int64_t n_classes = logits.size(-1);
    TORCH_CHECK(tokens.numel() * n_classes == logits.numel(), tokens.numel(), " tokens for ",
                logits.numel() / n_classes, " rows of logits");
    TORCH_CHECK(tokens.numel() == 0 || (tokens.min().item<std::int64_t>() >= 0 &&
                                        tokens.max().item<std::int64_t>() < n_classes),
                "a token beyond ", n_classes, " classes");
    const auto options = logits.options().dtype(torch::kFloat32);
    Tensor losses = torch::empty(tokens.sizes(), options);
    Tensor log_sums = torch::empty(tokens.sizes(), options);
    in_parallel(tokens.numel(), n_classes, [&](std::int64_t first, std::int64_t last) {
      loops::cross_entropy(values_of(logits), tokens.data_ptr<std::int64_t>(), n_classes, first,
                           last, losses.data_ptr<float>(), log_sums.data_ptr<float>());
    });
    context->save_for_backward({logits, tokens, log_sums});
    return losses;
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    refuse_second_derivatives();
    const tensor_list saved = context->get_saved_variables();
    const Tensor grad = grads[0].contiguous();
    const std::int64_t n_classes = saved[0].size(-1);
    Tensor grad_logits = torch::empty_like(saved[0]);
    in_parallel(grad.numel(), n_classes, [&](std::int64_t first, std::int64_t last) {
      loops::cross_entropy_gradient(values_of(saved[0]), saved[1].data_ptr<std::int64_t>(),
                                    saved[2].data_ptr<float>(), grad.data_ptr<float>(), n_classes,
                                    first, last, written(grad_logits));
    });
    return {grad_logits, Tensor()};
  }
};

struct CompareDistributionsStep : Function<CompareDistributionsStep> {
  static tensor_list forward(AutogradContext* context, const Tensor& given,
                             const Tensor& given_target) {
    const Tensor logits = given.contiguous();
    const Tensor target = given_target.contiguous();
    TORCH_CHECK(logits.sizes() == target.sizes(), "logits of ", logits.sizes(), " beside ",
                target.sizes());
    const std::int64_t n_classes = logits.size(-1);
    const auto rows = logits.sizes().slice(0, logits.dim() - 1);
    const auto of_rows = [&] {
      return torch::empty(rows, logits.options().dtype(torch::kFloat32));
    };
    Tensor cross_entropy = of_rows();
    Tensor entropy = of_rows();
    Tensor overlap = of_rows();
    Tensor log_sums = of_rows();
    Tensor target_log_sums = of_rows();
    in_parallel(cross_entropy.numel(), n_classes, [&](std::int64_t first, std::int64_t last) {
      loops::compare_distributions(values_of(logits), target.data_ptr<float>(), n_classes, first,
                                   last,
                                   {.cross_entropies = cross_entropy.data_ptr<float>(),
                                    .entropies = entropy.data_ptr<float>(),
                                    .overlaps = overlap.data_ptr<float>(),
                                    .log_sums = log_sums.data_ptr<float>(),
                                    .target_log_sums = target_log_sums.data_ptr<float>()});
    });
    context->save_for_backward({logits, target, log_sums, target_log_sums});
    context->mark_non_differentiable({entropy, overlap});
    return {cross_entropy, entropy, overlap};
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    refuse_second_derivatives();
    const tensor_list saved = context->get_saved_variables();
    const Tensor grad = grads[0].contiguous();
    const std::int64_t n_classes = saved[0].size(-1);
    Tensor grad_logits = torch::empty_like(saved[0]);
    in_parallel(grad.numel(), n_classes, [&](std::int64_t first, std::int64_t last) {
      loops::compare_distributions_gradient(values_of(saved[0]), saved[1].data_ptr<float>(),
                                            saved[2].data_ptr<float>(), saved[3].data_ptr<float>(),
                                            grad.data_ptr<float>(), n_classes, first, last,
                                            written(grad_logits));
    });
    return {grad_logits, Tensor()};
  }
};

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& weight, double epsilon, torch::ScalarType type) {
  if (is_fused(x) && x.scalar_type() == torch::kFloat32 &&
      (type == torch::kFloat32 || type == torch::kBFloat16)) {
    return RmsNormStep::apply(x, weight, epsilon, type);
  }
  return (x * torch::rsqrt(x.square().mean(-1, true) + epsilon) * weight).to(type);
}

Tensor turned_heads(const Tensor& x, std::int64_t n_heads, const Rotation& rotation, double scale) {
  if (is_fused(x)) {
    return TurnedHeadsStep::apply(x, n_heads, rotation.cosines, rotation.sines, scale);
  }
  const Tensor heads = x.view({x.size(0), x.size(1), n_heads, x.size(2) / n_heads}).transpose(1, 2);
  const auto halves = heads.chunk(2, -1);
  const Tensor turned = torch::cat({halves[0] * rotation.cosines - halves[1] * rotation.sines,
                                    halves[1] * rotation.cosines + halves[0] * rotation.sines},
                                   -1);
  return (turned * scale).to(x.scalar_type());
}

Tensor causal_softmax(const Tensor& scores) {
  if (is_fused(scores)) return CausalSoftmaxStep::apply(scores);
  const std::int64_t n_tokens = scores.size(-2);
  const std::int64_t n_keys = scores.size(-1);
  const Tensor later = torch::ones({n_tokens, n_keys}, scores.options().dtype(torch::kBool))
                           .triu(n_keys - n_tokens + 1);
  const Tensor seen = widened(scores).masked_fill(later, -std::numeric_limits<double>::infinity());
  return torch::softmax(seen, -1).to(scores.scalar_type());
}

Tensor silu_multiply(const Tensor& gate, const Tensor& up) {
  if (is_fused(gate) && gate.scalar_type() == up.scalar_type()) {
    return SiluMultiplyStep::apply(gate, up);
  }
  return (torch::silu(widened(gate)) * widened(up)).to(gate.scalar_type());
}

Tensor stream_sum(const Tensor& stream, const Tensor& part) {
  if (is_fused(stream) && stream.scalar_type() == torch::kFloat32 &&
      part.scalar_type() == torch::kBFloat16) {
    return StreamSumStep::apply(stream, part);
  }
  return stream + part;
}

Tensor cross_entropy_rows(const Tensor& logits, const Tensor& tokens) {
  if (is_fused(logits)) return CrossEntropyStep::apply(logits, tokens);
  return -torch::log_softmax(widened(logits), -1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1);
}

DistributionRows compare_distributions(const Tensor& logits, const Tensor& target_logits) {
  if (is_fused(logits) && target_logits.scalar_type() == torch::kFloat32) {
    const tensor_list rows = CompareDistributionsStep::apply(logits, target_logits.detach());
    return {rows[0], rows[1], rows[2]};
  }
  const Tensor logprob = torch::log_softmax(widened(logits), -1);
  const Tensor target_logprob = torch::log_softmax(widened(target_logits.detach()), -1);
  const Tensor target_prob = target_logprob.exp();
  // 0 times the logarithm of 0 counts as 0.
  const auto mean_logprob = [&](const Tensor& of) {
    return torch::where(target_prob > 0, target_prob * of, torch::zeros_like(of)).sum(-1);
  };
  const Tensor cross_entropy = -mean_logprob(logprob);
  const torch::NoGradGuard no_grad;
  return {cross_entropy, -mean_logprob(target_logprob),
          torch::minimum(logprob.exp(), target_prob).sum(-1)};
}

}  // namespace outrider::train
