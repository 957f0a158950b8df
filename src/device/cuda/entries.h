// SPDX-License-Identifier: Apache-2.0
// The kernels of the compiled image (kernels/entries.cuh), as hosts see them.
#ifndef OUTRIDER_DEVICE_CUDA_ENTRIES_H_
#define OUTRIDER_DEVICE_CUDA_ENTRIES_H_

#include <cstdint>
#include <span>

#include "device/cuda/kernels/launch.cuh"
#include "device/step.h"

namespace outrider::device::cuda {

struct Entry {
  const char* name;  // in the image
  Kernel kernel;
  std::uint32_t variant;  // Step::variant, or kAnyVariant
  std::uint32_t n_threads;
  void (*on_fiber)(const StepArguments& step);  // the same, compiled for emulated_block.h
};
inline constexpr std::uint32_t kAnyVariant = ~0U;

std::span<const Entry> entries();
// Its index among entries(). Throws Error where there is no kernel of that variant.
std::size_t entry_of(const Step& step);

}  // namespace outrider::device::cuda

#endif  // OUTRIDER_DEVICE_CUDA_ENTRIES_H_
