// Where training computes.
#ifndef OUTRIDER_TRAIN_DEVICE_H_
#define OUTRIDER_TRAIN_DEVICE_H_

#include <string>

#include "train/products.h"

namespace outrider::train {

// The threads of all training in this process; 0: every processor this process may run on. Call it
// before anything is made. Returns how many there are.
int set_training_threads(int n_threads);

// The device of all training in this process: "cpu", "cuda", or "auto", a CUDA device where there
// is one. Call it before anything is made. Returns its name. Throws UsageError for a CUDA device
// that libtorch does not have. The frozen target runs in the engine, wherever that does.
std::string set_training_device(const std::string& name);

// What products are quickest in on that device: bf16 on a CUDA device and on a processor that has
// instructions for it (AVX512_BF16). (Elsewhere libtorch's take 18 times as long as in f32: 23
// tokens a second instead of 409, 8.4 million parameters on one thread of a processor with AVX2.)
// Call it after set_training_device.
Products quickest_products();

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_DEVICE_H_
