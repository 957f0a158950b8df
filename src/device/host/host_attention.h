// SPDX-License-Identifier: Apache-2.0
// Attention's steps (attend_steps.h) by the kernel table `scalar`.
#ifndef OUTRIDER_DEVICE_HOST_HOST_ATTENTION_H_
#define OUTRIDER_DEVICE_HOST_HOST_ATTENTION_H_

#include <cstddef>
#include <span>

#include "device/step.h"
#include "kernels/table.h"

namespace outrider::device {

// ranges: as for run_on_host (host_kernels.h).
void attend_on_host(const Step& step, std::span<std::byte* const> ranges, kernels::KvKind kv);
void merge_splits_on_host(const Step& step, std::span<std::byte* const> ranges);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_HOST_HOST_ATTENTION_H_
