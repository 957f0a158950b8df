// SPDX-License-Identifier: Apache-2.0
// The places of barriers between recorded steps. They are derived from what each step reads and
// writes, since no tool would find a missing one.
#ifndef OUTRIDER_DEVICE_BARRIERS_H_
#define OUTRIDER_DEVICE_BARRIERS_H_

#include <cstddef>
#include <span>
#include <vector>

#include "device/step.h"

namespace outrider::device {

// Returns the steps before which a barrier is placed, in ascending order; never step 0, since a
// program begins after one. Steps without a barrier between them may run in any order or at once:
// neither writes what the other reads or writes. The number of barriers is minimal: each is as late
// as the steps before it allow.
std::vector<std::size_t> derive_barriers(std::span<const Step> steps);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_BARRIERS_H_
