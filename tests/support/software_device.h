// SPDX-License-Identifier: Apache-2.0
// The name of the Vulkan device that tests give to programs and models: the one whose number is in
// OUTRIDER_TEST_VULKAN, otherwise the first that computes on the processor. Empty: there is none.
#ifndef OUTRIDER_TESTS_SUPPORT_SOFTWARE_DEVICE_H_
#define OUTRIDER_TESTS_SUPPORT_SOFTWARE_DEVICE_H_

#include <cstdlib>
#include <string>

#include "outrider/devices.h"

namespace outrider::test {

inline std::string software_device() {
  if (const char* const named = std::getenv("OUTRIDER_TEST_VULKAN")) {
    return std::string("vulkan:") + named;
  }
  for (const DeviceSummary& device : list_devices().devices) {
    if (device.is_software && device.refused.empty()) return device.name;
  }
  return "";
}

inline constexpr const char* kNoSoftwareDevice =
    "no Vulkan driver that computes on the processor (scripts/install-deps gpu)";

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_SOFTWARE_DEVICE_H_
