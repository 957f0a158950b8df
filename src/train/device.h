// SPDX-License-Identifier: Apache-2.0
// The device and threads of training.
#ifndef OUTRIDER_TRAIN_DEVICE_H_
#define OUTRIDER_TRAIN_DEVICE_H_

#include <string>

#include "train/modules/products.h"

namespace outrider::train {

// Sets the number of threads of all training in this process; 0: as many as the processors this
// process may run on. Call it before anything else of training. Returns the number of threads.
int set_training_threads(int n_threads);

// Sets the device of all training in this process: "cpu", "cuda", or "auto" (a CUDA device if there
// is one). Call it before anything else of training. Returns the device's name. Throws UsageError
// for a CUDA device that libtorch does not have. The frozen target runs in the engine, on the
// engine's device.
std::string set_training_device(const std::string& name);

// The type in which products are fastest on that device: bf16 on a CUDA device and on a processor
// with AVX512_BF16, else f32. (On a processor with AVX2, libtorch's bf16 products take 18 times as
// long as in f32: 23 tokens a second instead of 409, for 8.4 million parameters on one thread.)
// Call it after set_training_device.
Products quickest_products();

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_DEVICE_H_
