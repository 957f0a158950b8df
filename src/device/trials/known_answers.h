// SPDX-License-Identifier: Apache-2.0
// The kernels that a program uses, tried on a device before it is trusted with a text: a driver
// that gets one wrong is refused, by a line that names the kernel.
//
// check.h tries all kernels, for a report. Here are those of a model alone: a driver has to compile
// them anyway, and that takes nearly all of the time.
#ifndef OUTRIDER_DEVICE_TRIALS_KNOWN_ANSWERS_H_
#define OUTRIDER_DEVICE_TRIALS_KNOWN_ANSWERS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/trials/trial.h"

namespace outrider::device {

struct NamedTrial {
  std::string what;  // "product int8, 8 rows together"
  Trial trial;
};

// Of a kernel in one form (Step::variant). merge_splits has none of its own: each trial of an
// attention ends in one.
std::vector<NamedTrial> trials_of(Kernel kernel, std::uint32_t variant);

// Throws Error where a kernel of the steps, in any form that it may take for more or fewer rows,
// gives other bits than the processor. Each is tried once on a device; none on the host, which is
// what others are compared with. Throws also what the device does.
void require_known_answers(Device& device, std::span<const Step> steps);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_TRIALS_KNOWN_ANSWERS_H_
