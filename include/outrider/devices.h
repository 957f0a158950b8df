// The GPUs of this machine, and whether they compute what the processor does.
#ifndef OUTRIDER_DEVICES_H_
#define OUTRIDER_DEVICES_H_

#include <cstddef>
#include <string>
#include <vector>

namespace outrider {

struct DeviceSummary {
  std::string name;    // "vulkan:0"
  std::string title;   // as its driver calls it
  std::string driver;  // with its version
  std::string kind;    // "discrete", "integrated", "virtual", "software" or "other"
  // How its arithmetic is done, where its driver leaves a choice; known answers decide that.
  std::string tier;
  std::size_t memory_bytes = 0;       // of its largest heap
  std::size_t most_buffer_bytes = 0;  // of one allocation that kernels see
  std::string refused;                // why it cannot be used; empty: it can
  bool is_software = false;           // computes on the processor; taken only where it is named
};

struct DeviceList {
  std::vector<DeviceSummary> devices;
  std::string why_none;  // where there are none: what is missing
};

// All devices that this build can use. Opens each to see how its arithmetic is done, which takes a
// fraction of a second. Any thread may call it.
DeviceList list_devices();

struct DeviceCheck {
  std::string what;     // "exponential", "product int8, 5 rows"
  std::string trouble;  // empty: the bits were the processor's; else the first that was not
};

// Known answers of one of these devices, by its name. Throws UsageError for a name that is none of
// them, Error where it cannot be opened.
std::vector<DeviceCheck> check_device(const std::string& name);

}  // namespace outrider

#endif  // OUTRIDER_DEVICES_H_
