// SPDX-License-Identifier: Apache-2.0
// The frozen target's outputs for a batch, as torch tensors on the training device.
#ifndef OUTRIDER_TRAIN_LOSSES_TARGET_TENSORS_H_
#define OUTRIDER_TRAIN_LOSSES_TARGET_TENSORS_H_

#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "train/batches/batch_tensors.h"
#include "train/modules/products.h"
#include "train/teacher.h"
#include "train/training_device.h"

namespace outrider::train {

// A batch and the target's outputs for it, in the type that a module computes in.
struct TargetTensors {
  TargetTensors(Teacher& target, const Batch& batch, std::span<const int> layers,
                torch::ScalarType type, bool with_logits = true)
      : TargetTensors(BatchTensors(batch), type) {
    target.run(batch.tokens, batch.n_sequences, with_logits, layers);
    const auto copy = [&](std::span<const float> values, int width) {
      return torch::from_blob(const_cast<float*>(values.data()),
                              {batch.n_sequences, batch.length, width}, torch::kFloat32)
          .to(training_device(), type, /*non_blocking=*/false, /*copy=*/true);
    };
    features = copy(target.output().features, target.output().feature_width);
    if (!with_logits) return;
    const LogitRows& rows = target.output().logits;
    logits = copy(rows.values(), rows.vocabulary_size());
  }

  torch::Tensor tokens;    // (n_sequences, length) int64
  torch::Tensor weights;   // (n_sequences, length)
  torch::Tensor features;  // (n_sequences, length, layers.size() * dim): layers side by side
  torch::Tensor logits;    // (n_sequences, length, vocabulary_size), or undefined

 private:
  TargetTensors(const BatchTensors& batch, torch::ScalarType type)
      : tokens(batch.tokens), weights(batch.weights.to(type)) {}
};

// Shifts a batch by n_places: places n_places, n_places + 1, ... of x (n_sequences, length, ...),
// n_rows of them, with zeros after the end.
inline torch::Tensor later(const torch::Tensor& x, std::int64_t n_places, std::int64_t n_rows) {
  const std::int64_t first = std::min(n_places, x.size(1));
  const std::int64_t n_there = std::min(n_rows, x.size(1) - first);
  const torch::Tensor there = x.narrow(1, first, n_there);
  if (n_there == n_rows) return there;
  std::vector<std::int64_t> missing = x.sizes().vec();
  missing[1] = n_rows - n_there;
  return torch::cat({there, torch::zeros(missing, x.options())}, 1);
}

// The matrices that a head shares with its target, (vocabulary_size, dim) each. Frozen.
struct SharedMatrices {
  explicit SharedMatrices(Teacher& target)
      : input(of(target, target.input_matrix())),
        output(of(target, target.output_matrix())),
        softcap(target.model().logit_form().softcap) {}

  torch::Tensor embed(const torch::Tensor& tokens, torch::ScalarType type) const {
    return torch::embedding(input, tokens).to(type);
  }
  // features (..., dim) -> logits (..., vocabulary_size)
  torch::Tensor logits(const torch::Tensor& features, Products products) const {
    const torch::ScalarType type =
        products == Products::full ? features.scalar_type() : torch::kBFloat16;
    const torch::Tensor plain =
        torch::linear(features.to(type), output.to(type)).to(features.scalar_type());
    return softcap > 0 ? softcap * torch::tanh(plain / softcap) : plain;
  }

  torch::Tensor input;
  torch::Tensor output;
  double softcap;  // LogitForm's; `output` already includes its scale

 private:
  static torch::Tensor of(Teacher& target, std::vector<float> matrix) {
    return torch::from_blob(matrix.data(), {target.config().vocabulary_size, target.config().dim},
                            torch::kFloat32)
        .to(training_device(), torch::kFloat32, /*non_blocking=*/false, /*copy=*/true);
  }
};

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_LOSSES_TARGET_TENSORS_H_
