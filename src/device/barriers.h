// Where barriers stand between recorded steps: derived from what each step reads and writes, since
// no tool finds one that was left out by hand.
#ifndef OUTRIDER_DEVICE_BARRIERS_H_
#define OUTRIDER_DEVICE_BARRIERS_H_

#include <cstddef>
#include <span>
#include <vector>

#include "device/step.h"

namespace outrider::device {

// The steps before which a barrier stands, in ascending order; never step 0, since a program as a
// whole begins behind one. Steps with no barrier between them may run in any order, or at once: of
// two such steps none writes what the other reads or writes. There are as few as can be: each
// stands as late as the steps before it allow.
std::vector<std::size_t> derive_barriers(std::span<const Step> steps);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_BARRIERS_H_
