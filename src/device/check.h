// Known answers: whether a device computes what the scalar kernel table does, bit by bit. A driver
// may be wrong, or use a freedom that the Vulkan specification gives it; this says so before a text
// does.
#ifndef OUTRIDER_DEVICE_CHECK_H_
#define OUTRIDER_DEVICE_CHECK_H_

#include <string>
#include <vector>

#include "device/device.h"
#include "device/kernel_steps.h"

namespace outrider::device {

struct CheckResult {
  std::string what;     // "exponential", "product_int8, 5 rows"
  std::string trouble;  // empty: all answers were right; else the first that was not, or the error
  bool passed() const { return trouble.empty(); }
};

// Whether single operations give the processor's bits: on edge values and some thousand others.
bool gives_known_answers(Device& device, Function function);

// All that the engine uses, operations first, then kernels.
std::vector<CheckResult> check_device(Device& device);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_CHECK_H_
