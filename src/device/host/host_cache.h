// SPDX-License-Identifier: Apache-2.0
// The steps of cache_steps.h by the kernel table `scalar` (host_kernels.h).
#ifndef OUTRIDER_DEVICE_HOST_HOST_CACHE_H_
#define OUTRIDER_DEVICE_HOST_HOST_CACHE_H_

#include <cstddef>
#include <span>

#include "device/step.h"

namespace outrider::device {

void run_cache_on_host(const Step& step, std::span<std::byte* const> ranges);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_HOST_HOST_CACHE_H_
