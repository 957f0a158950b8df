// SPDX-License-Identifier: Apache-2.0
// The objective of a training run: its parameters and its loss. Each objective has a file under
// objectives/. The header there declares only a function that makes it, and needs no torch.
#ifndef OUTRIDER_TRAIN_OBJECTIVE_H_
#define OUTRIDER_TRAIN_OBJECTIVE_H_

#include <torch/torch.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "train/output/metric.h"

namespace outrider::train {

struct Loss {
  torch::Tensor value;          // a scalar with gradients
  std::int64_t n_tokens = 0;    // tokens that count in it
  std::vector<Metric> metrics;  // its parts, for the log
};

// Not thread-safe.
class Objective {
 public:
  virtual ~Objective() = default;

  // The trained parameters, f32 (f64 in tests of gradients); no frozen ones.
  virtual torch::nn::Module& trained() = 0;

  // The loss on the micro-batch of this number. It depends only on the number, the parameters and
  // torch's default generator, which the loop seeds from the number. A resumed run therefore takes
  // the same steps.
  virtual Loss loss(std::int64_t batch_number) = 0;

  // Metrics on held-out data, or none. Does not change the results of loss().
  virtual std::vector<Metric> evaluate() { return {}; }

  // Writes the trained parameters as a Hugging Face directory; every file appears whole or not at
  // all.
  virtual void export_to(const std::filesystem::path& directory) = 0;
};

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OBJECTIVE_H_
