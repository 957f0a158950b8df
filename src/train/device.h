// Where training computes.
#ifndef OUTRIDER_TRAIN_DEVICE_H_
#define OUTRIDER_TRAIN_DEVICE_H_

#include <string>

namespace outrider::train {

// The threads of all training in this process; 0: every processor this process may run on. Call it
// before anything is made. Returns how many there are.
int set_training_threads(int n_threads);

// The device of all training in this process: "cpu", "cuda", or "auto", a CUDA device where there
// is one. Call it before anything is made. Returns its name. Throws UsageError for a CUDA device
// that libtorch does not have. The frozen target runs in the engine, wherever that does.
std::string set_training_device(const std::string& name);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_DEVICE_H_
