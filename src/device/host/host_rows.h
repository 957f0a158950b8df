// SPDX-License-Identifier: Apache-2.0
// The steps of row_steps.h by the kernel table `scalar` (host_kernels.h).
#ifndef OUTRIDER_DEVICE_HOST_HOST_ROWS_H_
#define OUTRIDER_DEVICE_HOST_HOST_ROWS_H_

#include <cstddef>
#include <span>

#include "device/step.h"

namespace outrider::device {

void run_rows_on_host(const Step& step, std::span<std::byte* const> ranges);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_HOST_HOST_ROWS_H_
