// SPDX-License-Identifier: Apache-2.0
// Devices by their names, as `outrider devices` prints them.
#ifndef OUTRIDER_DEVICE_OPEN_DEVICE_H_
#define OUTRIDER_DEVICE_OPEN_DEVICE_H_

#include <memory>
#include <string>

#include "device/device.h"

namespace outrider::device {

// "vulkan:N" and "cuda:N"; "vulkan": the first that is no software and can be used; "cuda": the
// first that the build has kernels for. For tests, the processor: "host", and "cuda-emulated:N"
// with the N-th order of threads (cuda/emulated_driver.h). Throws UsageError for a name that is
// none of them, Error where it cannot be opened.
//
// A device in use is opened once: callers that name it share it (shared_device.h). A lost one
// is not given to others. Thread-safe.
std::shared_ptr<Device> open_device(const std::string& name);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_OPEN_DEVICE_H_
