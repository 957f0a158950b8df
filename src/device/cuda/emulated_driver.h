// SPDX-License-Identifier: Apache-2.0
// A driver (driver.h) that computes on the processor, by emulated_block.h: its devices differ in
// the order of their threads. So the same host code runs as for a GPU, and the same kernels,
// compiled by the C++ compiler. Copies and launches wait in their stream until somebody
// synchronises it: host code that reads too early reads what was there before.
//
// What runs on it is called emulated wherever it is reported.
#ifndef OUTRIDER_DEVICE_CUDA_EMULATED_DRIVER_H_
#define OUTRIDER_DEVICE_CUDA_EMULATED_DRIVER_H_

#include <cstdint>
#include <memory>

#include "device/cuda/cuda_device.h"
#include "device/cuda/driver.h"
#include "device/cuda/emulated_block.h"

namespace outrider::device::cuda {

// Its index-th device has the index-th of kThreadOrders.
const Driver& emulated_driver();

// Seeds of the shuffled order count up from launch to launch, so that runs do the same again.
std::unique_ptr<CudaDevice> open_emulated(ThreadOrder order);

}  // namespace outrider::device::cuda

#endif  // OUTRIDER_DEVICE_CUDA_EMULATED_DRIVER_H_
