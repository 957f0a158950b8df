// SPDX-License-Identifier: Apache-2.0
// A batch as torch tensors on the training device.
#ifndef OUTRIDER_TRAIN_BATCHES_BATCH_TENSORS_H_
#define OUTRIDER_TRAIN_BATCHES_BATCH_TENSORS_H_

#include <torch/torch.h>

#include "train/batches/corpus.h"
#include "train/training_device.h"

namespace outrider::train {

struct BatchTensors {
  explicit BatchTensors(const Batch& batch)
      : tokens(torch::tensor(batch.tokens, torch::kInt64)
                   .view({batch.n_sequences, batch.length})
                   .to(training_device())),
        weights(torch::tensor(batch.weights, torch::kFloat32)
                    .view({batch.n_sequences, batch.length})
                    .to(training_device())) {}
  torch::Tensor tokens;   // (n_sequences, length) int64
  torch::Tensor weights;  // (n_sequences, length) f32

  // The tokens that are read, and the token to predict at each: (n_sequences, length - 1). Targets
  // are shifted by one place.
  torch::Tensor inputs() const { return tokens.narrow(1, 0, tokens.size(1) - 1); }
  torch::Tensor targets() const { return tokens.narrow(1, 1, tokens.size(1) - 1); }
  torch::Tensor target_weights() const { return weights.narrow(1, 1, weights.size(1) - 1); }
};

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_BATCHES_BATCH_TENSORS_H_
