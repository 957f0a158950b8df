// SPDX-License-Identifier: Apache-2.0
// The state from which a training run resumes: parameters, optimiser state, number of steps.
#ifndef OUTRIDER_TRAIN_OUTPUT_CHECKPOINT_H_
#define OUTRIDER_TRAIN_OUTPUT_CHECKPOINT_H_

#include <torch/torch.h>

#include <cstdint>
#include <filesystem>

namespace outrider::train {

// Replaces the file as a whole: after a kill or with a full disk, the previous file remains. Throws
// Error.
void save_checkpoint(const std::filesystem::path& file, const torch::nn::Module& trained,
                     const torch::optim::Optimizer& optimizer, std::int64_t n_steps_done);

// Returns the number of steps done. Throws Error for a damaged file or a file of another model.
std::int64_t load_checkpoint(const std::filesystem::path& file, torch::nn::Module& trained,
                             torch::optim::Optimizer& optimizer);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OUTPUT_CHECKPOINT_H_
