// Random weights that a model begins with.
#ifndef OUTRIDER_TRAIN_INITIAL_WEIGHTS_H_
#define OUTRIDER_TRAIN_INITIAL_WEIGHTS_H_

#include <torch/torch.h>

#include <functional>
#include <string>

namespace outrider::train {

// How many matrices write into the stream that this parameter writes into, itself among them; 0 for
// a parameter that writes into none.
using CountWrites = std::function<int(const std::string& name)>;

// Weights from a normal law of 0.02, those that write into a residual stream divided by the root of
// the number of times it is written to (Radford et al. 2019, "Language Models are Unsupervised
// Multitask Learners", section 2.3; 0.02 is Radford et al. 2018's); norms at one, biases at zero.
// One size for all suits AdamW, which moves all by the same. Draws from torch's generator, in the
// order of the parameters.
void draw_weights(torch::nn::Module& module, const CountWrites& count_writes);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_INITIAL_WEIGHTS_H_
