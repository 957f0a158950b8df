// SPDX-License-Identifier: Apache-2.0
// The device of training tensors, as a torch type.
#ifndef OUTRIDER_TRAIN_TRAINING_DEVICE_H_
#define OUTRIDER_TRAIN_TRAINING_DEVICE_H_

#include <torch/torch.h>

namespace outrider::train {

// The device set by set_training_device(); initially the processor.
torch::Device training_device();

// Called for a device's name (train/device.h), and by tests of where tensors are created ("meta":
// tensors without values). One device for the process: not thread-safe.
void set_training_device(torch::Device device);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_TRAINING_DEVICE_H_
