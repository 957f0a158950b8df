// SPDX-License-Identifier: Apache-2.0
// Devices of Vulkan, where Vulkan is not built.
#include "device/device_names.h"
#include "outrider/error.h"

namespace outrider::device {
namespace {

constexpr const char* kWhy =
    "this build has no Vulkan: its headers (1.3) or glslc were missing (scripts/install-deps gpu)";

}  // namespace

DeviceList list_vulkan() { return {.devices = {}, .missing = {{"vulkan", kWhy}}}; }

NamedDevice find_vulkan(const std::string& name, const NamedIndex&) {
  throw UsageError("open device", name, kWhy);
}

}  // namespace outrider::device
