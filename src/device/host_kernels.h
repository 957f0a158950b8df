// Steps by the kernel table `scalar` and, for single operations, by the processor's own: what a
// step means.
#ifndef OUTRIDER_DEVICE_HOST_KERNELS_H_
#define OUTRIDER_DEVICE_HOST_KERNELS_H_

#include <cstddef>
#include <span>

#include "device/step.h"

namespace outrider::device {

// ranges: where those of the step's uses begin, one by one; each on a cache line.
void run_on_host(const Step& step, std::span<std::byte* const> ranges);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_HOST_KERNELS_H_
