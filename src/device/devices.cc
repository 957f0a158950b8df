// SPDX-License-Identifier: Apache-2.0
// The public interface (outrider/devices.h), if Vulkan is built.
#include "outrider/devices.h"

#include <fmt/format.h>

#include <memory>

#include "device/host/host_device.h"
#include "device/open_device.h"
#include "device/trials/check.h"
#include "device/vulkan/vulkan_device.h"
#include "outrider/error.h"

namespace outrider {
namespace {

using device::DeviceKind;

const char* name_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::host:
      return "host";
    case DeviceKind::discrete:
      return "discrete";
    case DeviceKind::integrated:
      return "integrated";
    case DeviceKind::virtual_gpu:
      return "virtual";
    case DeviceKind::software:
      return "software";
    case DeviceKind::other:
      break;
  }
  return "other";
}

std::string name_at(std::size_t index) { return fmt::format("vulkan:{}", index); }

[[noreturn]] void refuse_name(const char* operation, const std::string& name,
                              const device::VulkanInstance& vulkan) {
  const std::size_t n = vulkan.devices().size();
  throw UsageError(operation, name,
                   n == 0 ? std::string("a device (there is none)")
                          : fmt::format("one of the {} devices that outrider devices lists", n),
                   "another name");
}

DeviceSummary summarise(const std::shared_ptr<device::VulkanInstance>& vulkan, std::size_t index) {
  const device::PhysicalDevice& physical = vulkan->devices()[index];
  DeviceSummary summary;
  summary.name = name_at(index);
  summary.title = physical.facts.name;
  summary.driver = physical.facts.driver;
  summary.kind = name_of(physical.facts.kind);
  summary.is_software = physical.facts.kind == DeviceKind::software;
  summary.memory_bytes = physical.facts.memory_bytes;
  summary.max_buffer_bytes = physical.facts.max_buffer_bytes;
  summary.refused = physical.refused;
  if (!summary.refused.empty()) return summary;
  try {
    summary.tier = device::open_vulkan(vulkan, index)->facts().tier;
  } catch (const Error& error) {
    summary.refused = error.what();
  }
  return summary;
}

}  // namespace

DeviceList list_devices() {
  DeviceList list;
  try {
    const auto vulkan = device::VulkanInstance::create();
    for (std::size_t i = 0; i < vulkan->devices().size(); ++i) {
      list.devices.push_back(summarise(vulkan, i));
    }
    if (list.devices.empty()) list.why_none = "Vulkan's loader is there, but no driver of a device";
  } catch (const Error& error) {
    list.why_none = error.what();
  }
  return list;
}

std::vector<DeviceCheck> check_device(const std::string& name) {
  const auto vulkan = device::VulkanInstance::create();
  for (std::size_t i = 0; i < vulkan->devices().size(); ++i) {
    if (name != name_at(i)) continue;
    const auto opened = device::open_vulkan(vulkan, i);
    std::vector<DeviceCheck> checks;
    for (device::CheckResult& result : device::check_device(*opened)) {
      checks.push_back({std::move(result.what), std::move(result.trouble)});
    }
    return checks;
  }
  refuse_name("check device", name, *vulkan);
}

namespace device {

std::shared_ptr<Device> open_device(const std::string& name) {
  if (name == "host") return std::make_shared<HostDevice>();
  const bool is_any = name == "vulkan";
  if (!is_any && !name.starts_with("vulkan:")) {
    throw UsageError("open device", name, "vulkan, vulkan:N or host", "another name");
  }
  const auto vulkan = VulkanInstance::create();
  for (std::size_t i = 0; i < vulkan->devices().size(); ++i) {
    const PhysicalDevice& physical = vulkan->devices()[i];
    const bool may_choose = physical.facts.kind != DeviceKind::software && physical.refused.empty();
    if (is_any ? may_choose : name == name_at(i)) return open_vulkan(vulkan, i);
  }
  if (is_any) {
    throw Error("open device", name, "a GPU that can be used (outrider devices lists them)",
                "none; a software device has to be named");
  }
  refuse_name("open device", name, *vulkan);
}

}  // namespace device
}  // namespace outrider
