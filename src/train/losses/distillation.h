// SPDX-License-Identifier: Apache-2.0
// Loss and metrics shared by every kind of distillation.
#ifndef OUTRIDER_TRAIN_LOSSES_DISTILLATION_H_
#define OUTRIDER_TRAIN_LOSSES_DISTILLATION_H_

#include <torch/torch.h>

#include <cstdint>

#include "train/losses/divergence.h"
#include "train/losses/losses.h"
#include "train/losses/weighted_means.h"
#include "train/objective.h"

namespace outrider::train {

// The drafter's and the target's distributions at the places that count, over the same outcomes.
struct ComparedDistributions {
  torch::Tensor draft_logits;   // (n_rows, n_outcomes), with gradients
  torch::Tensor target_logits;  // (n_rows, n_outcomes)
  torch::Tensor agrees;         // (n_rows), 0 or 1: both have the same likeliest token
  torch::Tensor weights;        // (n_rows): the weight of each row
};

// Mean divergence, with the metric "overlap": the expected acceptance of one drafted token.
inline Loss distillation_loss(Divergence divergence, const ComparedDistributions& dists) {
  const Judged rows = judge_rows(divergence, dists.draft_logits, dists.target_logits);
  return {.value = weighted_mean(rows.divergence, dists.weights),
          .n_tokens = static_cast<std::int64_t>(dists.weights.sum().item<double>()),
          .metrics = {{"overlap", weighted_mean(rows.overlap, dists.weights).item<double>()}}};
}

// Adds "loss", "overlap" and "agreement" of one batch to the means of an evaluation. Agreement is
// the share of places where both have the same likeliest token.
inline void add_distillation(Divergence divergence, const ComparedDistributions& dists,
                             WeightedMeans& means) {
  const double weight = dists.weights.sum().item<double>();
  const auto add = [&](const char* name, const torch::Tensor& rows) {
    means.add(name, weighted_mean(rows, dists.weights).item<double>(), weight);
  };
  const Judged rows = judge_rows(divergence, dists.draft_logits, dists.target_logits);
  add("loss", rows.divergence);
  add("overlap", rows.overlap);
  add("agreement", dists.agrees.to(dists.weights.scalar_type()));
}

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_LOSSES_DISTILLATION_H_
