// SPDX-License-Identifier: Apache-2.0
// Runs steps by the kernel table `scalar`, and single operations by the processor's own: the
// definition of each step.
#ifndef OUTRIDER_DEVICE_HOST_HOST_KERNELS_H_
#define OUTRIDER_DEVICE_HOST_HOST_KERNELS_H_

#include <cstddef>
#include <span>

#include "device/step.h"

namespace outrider::device {

// ranges: the beginnings of the step's uses, in order; each on a cache line.
void run_on_host(const Step& step, std::span<std::byte* const> ranges);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_HOST_HOST_KERNELS_H_
