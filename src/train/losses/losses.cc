// SPDX-License-Identifier: Apache-2.0
#include "train/losses/losses.h"

#include <cmath>
#include <limits>

namespace outrider::train {

using torch::Tensor;

Tensor weighted_mean(const Tensor& row_losses, const Tensor& weights) {
  const Tensor sum = weights.sum();
  return (row_losses * weights).sum() / torch::where(sum > 0, sum, torch::ones_like(sum));
}

Tensor divergence_rows(Divergence divergence, const Tensor& draft_logits,
                       const Tensor& target_logits) {
  if (divergence == Divergence::forward_kl) {
    const DistributionRows dists = compare_distributions(draft_logits, target_logits);
    return dists.cross_entropy - dists.entropy;
  }
  const Tensor draft_logprob = torch::log_softmax(draft_logits, -1);
  const Tensor target_logprob = torch::log_softmax(target_logits, -1);
  const Tensor draft_prob = draft_logprob.exp();
  const Tensor target_prob = target_logprob.exp();
  if (divergence == Divergence::total_variation) {
    return 0.5 * (target_prob - draft_prob).abs().sum(-1);
  }
  // sum a log(a / b), with 0 log 0 = 0.
  const auto kl = [](const Tensor& prob, const Tensor& logprob, const Tensor& other_logprob) {
    const Tensor terms = prob * (logprob - other_logprob);
    return torch::where(prob > 0, terms, torch::zeros_like(terms)).sum(-1);
  };
  if (divergence == Divergence::reverse_kl) return kl(draft_prob, draft_logprob, target_logprob);
  // Jensen-Shannon: log((t + d) / 2) computed from logarithms.
  const Tensor mean_logprob = torch::logaddexp(draft_logprob, target_logprob) - std::log(2.0);
  return 0.5 * (kl(target_prob, target_logprob, mean_logprob) +
                kl(draft_prob, draft_logprob, mean_logprob));
}

Judged judge_rows(Divergence divergence, const Tensor& draft_logits, const Tensor& target_logits) {
  const DistributionRows dists = compare_distributions(draft_logits, target_logits);
  return {divergence == Divergence::forward_kl
              ? dists.cross_entropy - dists.entropy
              : divergence_rows(divergence, draft_logits, target_logits),
          dists.overlap};
}

Tensor coarsened_logprobs(const Tensor& logits, const Tensor& ids) {
  const Tensor listed = torch::log_softmax(logits, -1).gather(-1, ids);
  if (ids.size(-1) == logits.size(-1)) return listed;
  // The others are summed separately: one minus the listed ones would leave only the rounding error
  // of a small sum.
  const Tensor others =
      logits.scatter(-1, ids, -std::numeric_limits<double>::infinity()).logsumexp(-1, true) -
      logits.logsumexp(-1, true);
  return torch::cat({listed, others}, -1);
}

}  // namespace outrider::train
