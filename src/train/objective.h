// What a run trains: parameters, and the loss that moves them. Each has a file under objectives/,
// whose header shows a function that makes it and nothing of torch.
#ifndef OUTRIDER_TRAIN_OBJECTIVE_H_
#define OUTRIDER_TRAIN_OBJECTIVE_H_

#include <torch/torch.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "train/metric.h"

namespace outrider::train {

struct Loss {
  torch::Tensor value;          // a scalar with gradients
  std::int64_t n_tokens = 0;    // that were learned from
  std::vector<Metric> metrics;  // its parts, for the log
};

// Not thread-safe.
class Objective {
 public:
  virtual ~Objective() = default;

  // The parameters in training, f32 (f64 in proofs), and nothing that is frozen.
  virtual torch::nn::Module& trained() = 0;

  // The loss on the micro-batch of this number. A function of the number, the parameters and
  // torch's generator, which the loop seeds by the number: a resumed run takes the same steps.
  virtual Loss loss(std::int64_t batch_number) = 0;

  // Figures on held-out data, or none. Leaves no trace in what loss() gives.
  virtual std::vector<Metric> evaluate() { return {}; }

  // Writes what was trained as a Hugging Face directory; every file appears whole or not at all.
  virtual void export_to(const std::filesystem::path& directory) = 0;
};

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OBJECTIVE_H_
