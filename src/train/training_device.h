// The device that tensors in training are made on, as torch calls it.
#ifndef OUTRIDER_TRAIN_TRAINING_DEVICE_H_
#define OUTRIDER_TRAIN_TRAINING_DEVICE_H_

#include <torch/torch.h>

namespace outrider::train {

// What set_training_device() chose; the processor until then.
torch::Device training_device();

// For tests that watch where tensors are made ("meta" has none of their values).
void set_training_device(torch::Device device);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_TRAINING_DEVICE_H_
