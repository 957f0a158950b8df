// SPDX-License-Identifier: Apache-2.0
// Tries the kernels of a program on a device before texts are run on it: a driver that computes one
// wrongly is refused, with a message that names the kernel.
//
// check.h tries all kernels, for a report. This tries only those of a model: a driver must compile
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

// The trials of a kernel in one form (Step::variant). merge_splits has none of its own: each trial
// of an attention ends with it.
std::vector<NamedTrial> trials_of(Kernel kernel, std::uint32_t variant);

// Throws Error if a kernel of the steps gives other bits than the processor, in any form that it
// may take for more or fewer rows. Each is tried once per device, and none on the host, which is
// the reference. Throws also the device's own errors.
void require_known_answers(Device& device, std::span<const Step> steps);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_TRIALS_KNOWN_ANSWERS_H_
