// SPDX-License-Identifier: Apache-2.0
// The public interface (outrider/devices.h), if Vulkan is not built.
#include "device/host/host_device.h"
#include "device/open_device.h"
#include "outrider/devices.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr const char* kWhy =
    "this build has no Vulkan: its headers (1.3) or glslc were missing (scripts/install-deps gpu)";

}  // namespace

DeviceList list_devices() { return {.devices = {}, .why_none = kWhy}; }

std::vector<DeviceCheck> check_device(const std::string& name) {
  throw UsageError("check device", name, kWhy);
}

std::shared_ptr<device::Device> device::open_device(const std::string& name) {
  if (name == "host") return std::make_shared<HostDevice>();
  throw UsageError("open device", name, kWhy);
}

}  // namespace outrider
