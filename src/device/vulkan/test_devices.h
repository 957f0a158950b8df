// SPDX-License-Identifier: Apache-2.0
// The Vulkan device for tests: the one whose number is in OUTRIDER_TEST_VULKAN, otherwise a
// software device. A GPU must be named, so that tests do the same everywhere.
#ifndef OUTRIDER_DEVICE_VULKAN_TEST_DEVICES_H_
#define OUTRIDER_DEVICE_VULKAN_TEST_DEVICES_H_

#include <cstdlib>
#include <memory>
#include <string>

#include "device/vulkan/vulkan_device.h"
#include "outrider/error.h"

namespace outrider::device {

struct FoundTestDevice {
  std::shared_ptr<VulkanInstance> instance;
  std::size_t index = 0;
  std::string why_none;
};

// Searched for once; validates: with the validation layer.
inline FoundTestDevice find_test_device(bool validates = false) {
  FoundTestDevice found;
  try {
    found.instance = VulkanInstance::create(validates);
  } catch (const Error& error) {
    found.why_none = error.what();
    return found;
  }
  const auto& devices = found.instance->devices();
  if (const char* const named = std::getenv("OUTRIDER_TEST_VULKAN")) {
    found.index = static_cast<std::size_t>(std::atoi(named));
    if (found.index >= devices.size()) found.why_none = "OUTRIDER_TEST_VULKAN names no device";
    return found;
  }
  for (; found.index < devices.size(); ++found.index) {
    const PhysicalDevice& device = devices[found.index];
    if (device.facts.kind == DeviceKind::software && device.refused.empty()) return found;
  }
  found.why_none = "no Vulkan driver that computes on the processor (scripts/install-deps gpu)";
  return found;
}

inline const FoundTestDevice& the_test_device() {
  static const FoundTestDevice found = find_test_device();
  return found;
}

inline const std::string& why_no_test_device() { return the_test_device().why_none; }

// Null if there is none.
inline std::unique_ptr<VulkanDevice> test_device(const VulkanChoice& choice = {}) {
  const FoundTestDevice& found = the_test_device();
  if (!found.why_none.empty()) return nullptr;
  return open_vulkan(found.instance, found.index, choice);
}

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_VULKAN_TEST_DEVICES_H_
