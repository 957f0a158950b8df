// SPDX-License-Identifier: Apache-2.0
// The public face (outrider/devices.h), and devices by their names.
#include "outrider/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "device/cuda/emulated_driver.h"
#include "device/device_names.h"
#include "device/host/host_device.h"
#include "device/open_device.h"
#include "device/trials/check.h"
#include "outrider/error.h"

namespace outrider {
namespace device {

std::optional<NamedIndex> index_in(std::string_view name, std::string_view api) {
  if (name == api) return NamedIndex{.is_any = true};
  if (!name.starts_with(api) || name.size() < api.size() + 2 || name[api.size()] != ':') {
    return std::nullopt;
  }
  const char* const begin = name.data() + api.size() + 1;
  const char* const end = name.data() + name.size();
  NamedIndex which;
  const auto [rest, error] = std::from_chars(begin, end, which.index);
  if (error != std::errc() || rest != end) return std::nullopt;
  if (*begin == '0' && end - begin > 1) return std::nullopt;  // one name a device
  return which;
}

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

DeviceSummary summary_of(const DeviceFacts& facts) {
  DeviceSummary summary;
  summary.title = facts.name;
  summary.driver = facts.driver;
  summary.kind = name_of(facts.kind);
  summary.tier = facts.tier;
  summary.is_software = facts.kind == DeviceKind::software;
  summary.memory_bytes = facts.memory_bytes;
  summary.max_buffer_bytes = facts.max_buffer_bytes;
  return summary;
}

void refuse_index(const std::string& name, std::size_t n) {
  throw UsageError("open device", name,
                   n == 0 ? std::string("a device (there is none)")
                          : fmt::format("one of the {} devices that outrider devices lists", n),
                   "another name");
}

namespace {

NamedDevice find_emulated(const std::string& name, const NamedIndex& which) {
  constexpr std::size_t kOrders = std::size(cuda::kThreadOrders);
  if (which.index >= kOrders) refuse_index(name, kOrders);
  return {fmt::format("cuda-emulated:{}", which.index),
          [index = which.index] { return cuda::open_emulated(cuda::kThreadOrders[index]); }};
}

NamedDevice find_device(const std::string& name) {
  if (name == "host") return {name, [] { return std::make_unique<HostDevice>(); }};
  if (const auto which = index_in(name, "vulkan")) return find_vulkan(name, *which);
  if (const auto which = index_in(name, "cuda")) return find_cuda(name, *which);
  if (const auto which = index_in(name, "cuda-emulated")) return find_emulated(name, *which);
  throw UsageError("open device", name, "vulkan, vulkan:N, cuda, cuda:N or host", "another name");
}

}  // namespace

std::shared_ptr<Device> open_device(const std::string& name) {
  static SharedDevices devices;
  const NamedDevice found = find_device(name);
  return devices.get(found.name, found.open);
}

}  // namespace device

DeviceList list_devices() {
  DeviceList list = device::list_vulkan();
  DeviceList of_cuda = device::list_cuda();
  list.devices.insert(list.devices.end(), std::make_move_iterator(of_cuda.devices.begin()),
                      std::make_move_iterator(of_cuda.devices.end()));
  std::move(of_cuda.missing.begin(), of_cuda.missing.end(), std::back_inserter(list.missing));
  return list;
}

std::vector<DeviceCheck> check_device(const std::string& name) {
  const std::shared_ptr<device::Device> opened = device::open_device(name);
  std::vector<DeviceCheck> checks;
  for (device::CheckResult& result : device::check_device(*opened)) {
    checks.push_back({std::move(result.what), std::move(result.trouble)});
  }
  return checks;
}

}  // namespace outrider
