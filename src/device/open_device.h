// SPDX-License-Identifier: Apache-2.0
// Devices by their names, as `outrider devices` prints them.
#ifndef OUTRIDER_DEVICE_OPEN_DEVICE_H_
#define OUTRIDER_DEVICE_OPEN_DEVICE_H_

#include <memory>
#include <string>

#include "device/device.h"

namespace outrider::device {

// "vulkan:N"; "vulkan": the first usable device that is not software; "host": the processor, for
// tests. Throws UsageError for other names, Error if the device cannot be opened.
std::shared_ptr<Device> open_device(const std::string& name);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_OPEN_DEVICE_H_
