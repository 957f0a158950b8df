// SPDX-License-Identifier: Apache-2.0
// Random initial weights.
#ifndef OUTRIDER_TRAIN_MODULES_INITIAL_WEIGHTS_H_
#define OUTRIDER_TRAIN_MODULES_INITIAL_WEIGHTS_H_

#include <torch/torch.h>

#include <functional>
#include <string>

namespace outrider::train {

// Returns how many matrices write into the same residual stream as this parameter, itself included;
// 0 for a parameter that writes into none.
using CountWrites = std::function<int(const std::string& name)>;

// Draws weights from a normal distribution with a standard deviation of 0.02. For matrices that
// write into a residual stream, it is divided by the square root of the number of such writes
// (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.3; 0.02 is
// from Radford et al. 2018). Norms are one, biases zero. The same deviation for all matrices suits
// AdamW, whose updates have the same size for all. Draws from torch's default generator, in the
// order of the parameters.
void draw_weights(torch::nn::Module& module, const CountWrites& count_writes);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_MODULES_INITIAL_WEIGHTS_H_
