// SPDX-License-Identifier: Apache-2.0
// Devices of each API by their names, behind open_device.h and outrider/devices.h.
#ifndef OUTRIDER_DEVICE_DEVICE_NAMES_H_
#define OUTRIDER_DEVICE_DEVICE_NAMES_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "device/device.h"
#include "device/shared_device.h"
#include "outrider/devices.h"

namespace outrider::device {

// Which device of an API a name means: "vulkan:2" the third of "vulkan", "vulkan" itself any that
// is no software. Nothing where it is no name of the API's.
struct NamedIndex {
  bool is_any = false;
  std::size_t index = 0;
};
std::optional<NamedIndex> index_in(std::string_view name, std::string_view api);

const char* name_of(DeviceKind kind);
// Of facts, all but the name and why it is refused.
DeviceSummary summary_of(const DeviceFacts& facts);

// Throws UsageError: the n-th device and later ones are not there.
[[noreturn]] void refuse_index(const std::string& name, std::size_t n);

// The device that a name means.
struct NamedDevice {
  std::string name;  // "vulkan:0", also where it was called "vulkan"
  SharedDevices::Open open;
};

// "vulkan" and "vulkan:N" (vulkan_names.cc, or vulkan_names_absent.cc where Vulkan is not built).
DeviceList list_vulkan();
NamedDevice find_vulkan(const std::string& name, const NamedIndex& which);

// "cuda" and "cuda:N".
DeviceList list_cuda();
NamedDevice find_cuda(const std::string& name, const NamedIndex& which);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_DEVICE_NAMES_H_
