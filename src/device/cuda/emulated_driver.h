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

// What stands open on the emulated driver, and what went wrong there without an error. Thread-safe.
struct EmulatedUse {
  int contexts = 0;  // retained
  int modules = 0;
  int streams = 0;
  int graphs = 0;
  int programs = 0;
  int buffers = 0;
  int waiting = 0;      // copies and launches that nobody has waited for
  int current = 0;      // contexts of the calling thread
  int early_frees = 0;  // of memory, while work waited on the same device: it only grows

  bool operator==(const EmulatedUse&) const = default;
};
EmulatedUse emulated_use();

// Seeds of the shuffled order count up from launch to launch, so that runs do the same again.
std::unique_ptr<CudaDevice> open_emulated(ThreadOrder order);

// The seed of the launch that the calling thread ran last, by waiting for it; 0: none.
std::uint32_t last_emulated_seed();

}  // namespace outrider::device::cuda

#endif  // OUTRIDER_DEVICE_CUDA_EMULATED_DRIVER_H_
