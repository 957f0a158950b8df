// SPDX-License-Identifier: Apache-2.0
// Known answers: tests whether a device has the scalar kernel table's bits. A driver may be wrong,
// or use a freedom of the Vulkan specification; the check reports it before a text shows it.
#ifndef OUTRIDER_DEVICE_TRIALS_CHECK_H_
#define OUTRIDER_DEVICE_TRIALS_CHECK_H_

#include <string>
#include <vector>

#include "device/device.h"
#include "device/kernel_steps.h"

namespace outrider::device {

struct CheckResult {
  std::string what;  // "exponential", "product_int8, 5 rows"
  // Empty if all answers were right; otherwise the first wrong one, or the error.
  std::string trouble;
  bool passed() const { return trouble.empty(); }
};

// Whether single operations have the processor's bits, for edge values and some thousand others.
bool gives_known_answers(Device& device, Function function);

// Checks everything that the engine uses, operations first, then kernels.
std::vector<CheckResult> check_device(Device& device);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_TRIALS_CHECK_H_
