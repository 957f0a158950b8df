// SPDX-License-Identifier: Apache-2.0
// Devices of Vulkan by their names.
#include <fmt/format.h>

#include <memory>

#include "device/device_names.h"
#include "device/vulkan/vulkan_device.h"
#include "outrider/error.h"

namespace outrider::device {
namespace {

DeviceSummary summarise(const std::shared_ptr<VulkanInstance>& vulkan, std::size_t index) {
  const PhysicalDevice& physical = vulkan->devices()[index];
  DeviceSummary summary = summary_of(physical.facts);
  summary.name = fmt::format("vulkan:{}", index);
  summary.refused = physical.refused;
  if (!summary.refused.empty()) return summary;
  try {
    summary.tier = open_vulkan(vulkan, index)->facts().tier;
  } catch (const Error& error) {
    summary.refused = error.what();
  }
  return summary;
}

}  // namespace

DeviceList list_vulkan() {
  DeviceList list;
  try {
    const auto vulkan = VulkanInstance::create();
    for (std::size_t i = 0; i < vulkan->devices().size(); ++i) {
      list.devices.push_back(summarise(vulkan, i));
    }
    if (list.devices.empty()) {
      list.missing.push_back({"vulkan", "its loader is there, but no driver of a device"});
    }
  } catch (const Error& error) {
    list.missing.push_back({"vulkan", error.what()});
  }
  return list;
}

NamedDevice find_vulkan(const std::string& name, const NamedIndex& which) {
  if (!which.is_any) {
    return {name, [name, index = which.index] {
              const auto vulkan = VulkanInstance::create();
              if (index >= vulkan->devices().size()) refuse_index(name, vulkan->devices().size());
              return open_vulkan(vulkan, index);
            }};
  }
  const auto vulkan = VulkanInstance::create();
  for (std::size_t i = 0; i < vulkan->devices().size(); ++i) {
    const PhysicalDevice& physical = vulkan->devices()[i];
    if (physical.facts.kind == DeviceKind::software || !physical.refused.empty()) continue;
    return {fmt::format("vulkan:{}", i), [vulkan, i] { return open_vulkan(vulkan, i); }};
  }
  throw Error("open device", name, "a GPU that can be used (outrider devices lists them)",
              "none; a software device has to be named");
}

}  // namespace outrider::device
