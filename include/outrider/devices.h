// SPDX-License-Identifier: Apache-2.0
// The GPUs of this machine, and a check that they compute the same bits as the processor.
#ifndef OUTRIDER_DEVICES_H_
#define OUTRIDER_DEVICES_H_

#include <cstddef>
#include <string>
#include <vector>

namespace outrider {

struct DeviceSummary {
  std::string name;    // "vulkan:0", "cuda:0"
  std::string title;   // the driver's name for it
  std::string driver;  // with its version
  std::string kind;    // "discrete", "integrated", "virtual", "software" or "other"
  // How it does arithmetic where its driver leaves a choice, determined by known answers.
  std::string tier;
  std::size_t memory_bytes = 0;      // of its largest heap
  std::size_t max_buffer_bytes = 0;  // of one allocation that kernels can use
  std::string refused;               // why it cannot be used; empty: it can
  bool is_software = false;          // computes on the processor; used only if named
};

// An API that has no device here.
struct MissingApi {
  std::string api;  // "vulkan" or "cuda"
  std::string why;  // one line: what the build or the machine lacks
};

struct DeviceList {
  std::vector<DeviceSummary> devices;
  std::vector<MissingApi> missing;  // the APIs that have none of them
};

// All devices that this build can use. Opens each one to determine its arithmetic, a fraction of a
// second each. Thread-safe.
DeviceList list_devices();

struct DeviceCheck {
  std::string what;     // "exponential", "product int8, 5 rows"
  std::string trouble;  // empty: the bits equal the processor's; else the first difference
};

// Checks a device, given by name, against known answers. Throws UsageError for an unknown name, and
// Error if the device cannot be opened.
std::vector<DeviceCheck> check_device(const std::string& name);

}  // namespace outrider

#endif  // OUTRIDER_DEVICES_H_
