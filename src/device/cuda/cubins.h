// SPDX-License-Identifier: Apache-2.0
// The kernels compiled for GPUs, which the build writes into the program
// (cmake/embed_cubins.cmake); none where nvcc was not found.
#ifndef OUTRIDER_DEVICE_CUDA_CUBINS_H_
#define OUTRIDER_DEVICE_CUDA_CUBINS_H_

#include <cstdint>
#include <span>

namespace outrider::device::cuda {

struct Cubin {
  int architecture;  // ten times the major version of the compute capability, and the minor one
  std::span<const std::uint64_t> words;
  int release = 0;  // of CUDA, whose nvcc compiled it, as drivers count them: 13000 for 13.0
};

std::span<const Cubin> cubins();

// Which of them runs on a device of that compute capability: that of its major version with the
// highest minor version up to its own. Null where there is none.
inline const Cubin* cubin_for(std::span<const Cubin> all, int major, int minor) {
  const Cubin* best = nullptr;
  for (const Cubin& cubin : all) {
    if (cubin.architecture / 10 != major || cubin.architecture % 10 > minor) continue;
    if (best == nullptr || best->architecture < cubin.architecture) best = &cubin;
  }
  return best;
}

}  // namespace outrider::device::cuda

#endif  // OUTRIDER_DEVICE_CUDA_CUBINS_H_
