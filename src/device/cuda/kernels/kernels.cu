// SPDX-License-Identifier: Apache-2.0
// The kernels as nvcc compiles them.
#include "device/cuda/kernels/entries.cuh"

using namespace outrider::device;        // NOLINT(google-build-using-namespace)
using namespace outrider::device::cuda;  // NOLINT(google-build-using-namespace)

#define OUTRIDER_DEFINE(name, kernel, variant, n_threads, body)     \
  extern "C" __global__ void __launch_bounds__(n_threads)           \
      outrider_##name(const __grid_constant__ StepArguments step) { \
    body(step);                                                     \
  }
OUTRIDER_CUDA_ENTRIES(OUTRIDER_DEFINE)
