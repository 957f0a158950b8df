// SPDX-License-Identifier: Apache-2.0
// Devices of CUDA by their names.
#include <fmt/format.h>

#include <memory>

#include "device/cuda/cuda_device.h"
#include "device/device_names.h"
#include "outrider/error.h"

namespace outrider::device {
namespace {

DeviceSummary summarise(const cuda::Driver& driver, int index) {
  DeviceSummary summary;
  try {
    summary = summary_of(cuda::facts_of(driver, index));
    (void)cuda::CudaDevice(driver, index, cuda::cubins());
  } catch (const Error& error) {
    summary.refused = error.what();
  }
  summary.name = fmt::format("cuda:{}", index);
  return summary;
}

}  // namespace

DeviceList list_cuda() {
  DeviceList list;
  try {
    const cuda::Driver& driver = cuda::nvidia_driver();
    const int n = cuda::n_devices(driver);
    for (int i = 0; i < n; ++i) list.devices.push_back(summarise(driver, i));
    if (n == 0) list.missing.push_back({"cuda", "NVIDIA's driver is there, but no device"});
  } catch (const Error& error) {
    list.missing.push_back({"cuda", error.what()});
  }
  return list;
}

NamedDevice find_cuda(const std::string& name, const NamedIndex& which) {
  if (which.is_any) {
    const cuda::Driver& driver = cuda::nvidia_driver();
    const int first = cuda::first_usable_device(driver, cuda::cubins());
    return {fmt::format("cuda:{}", first), [&driver, first] {
              return std::make_unique<cuda::CudaDevice>(driver, first, cuda::cubins());
            }};
  }
  return {name, [name, index = which.index] {
            const cuda::Driver& driver = cuda::nvidia_driver();
            const auto n = static_cast<std::size_t>(cuda::n_devices(driver));
            if (index >= n) refuse_index(name, n);
            return std::make_unique<cuda::CudaDevice>(driver, static_cast<int>(index),
                                                      cuda::cubins());
          }};
}

}  // namespace outrider::device
