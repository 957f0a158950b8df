// SPDX-License-Identifier: Apache-2.0
// What kernels see of a launch: their step, their place in the grid, memory of their block,
// barriers and shuffles. nvcc compiles kernels for GPUs; the C++ compiler compiles the same text
// for fibers (emulated_block.h).
#ifndef OUTRIDER_DEVICE_CUDA_KERNELS_LAUNCH_CUH_
#define OUTRIDER_DEVICE_CUDA_KERNELS_LAUNCH_CUH_

#include <cstddef>
#include <cstdint>

#ifndef __CUDACC__
#include "device/cuda/emulated_block.h"
#endif

#ifdef __CUDACC__
#define OUTRIDER_KERNEL_CODE __device__ __forceinline__
#define OUTRIDER_UNROLL _Pragma("unroll")
#else
#define OUTRIDER_KERNEL_CODE inline
#define OUTRIDER_UNROLL
#endif

namespace outrider::device::cuda {

inline constexpr std::uint32_t kMaxRanges = 8;
inline constexpr std::uint32_t kMaxWords = 16;

// The one argument of every kernel: where the ranges of the step begin, and its numbers (step.h).
struct StepArguments {
  void* ranges[kMaxRanges];
  std::uint32_t numbers[kMaxWords];
};

template <class Element>
OUTRIDER_KERNEL_CODE Element* range_of(const StepArguments& step, int index) {
  return static_cast<Element*>(step.ranges[index]);
}

// As the struct of words that the step was made of.
template <class Numbers>
OUTRIDER_KERNEL_CODE Numbers numbers_of(const StepArguments& step) {
  static_assert(sizeof(Numbers) <= sizeof step.numbers);
  Numbers numbers;
  __builtin_memcpy(&numbers, step.numbers, sizeof numbers);
  return numbers;
}

inline constexpr std::uint32_t kWarp = 32;

#ifdef __CUDACC__

OUTRIDER_KERNEL_CODE std::uint32_t lane_index() { return threadIdx.x; }
OUTRIDER_KERNEL_CODE std::uint32_t block_x() { return blockIdx.x; }
OUTRIDER_KERNEL_CODE std::uint32_t block_y() { return blockIdx.y; }
OUTRIDER_KERNEL_CODE std::uint32_t block_z() { return blockIdx.z; }
OUTRIDER_KERNEL_CODE std::uint32_t blocks_along_x() { return gridDim.x; }

// All threads of the block must call it, at one place.
OUTRIDER_KERNEL_CODE void wait_for_block() { __syncthreads(); }

// What the thread `by` places further in the warp brings; all threads of the warp must call it. The
// last ones get their own.
template <class Value>
OUTRIDER_KERNEL_CODE Value from_below(Value value, std::uint32_t by) {
  return __shfl_down_sync(0xffffffffU, value, by);
}
// What the thread brings whose place differs in these bits.
template <class Value>
OUTRIDER_KERNEL_CODE Value from_beside(Value value, std::uint32_t bits) {
  return __shfl_xor_sync(0xffffffffU, value, bits);
}

// Memory that the threads of a block share; one of each type.
template <class Memory>
OUTRIDER_KERNEL_CODE Memory& block_memory() {
  __shared__ Memory memory;
  return memory;
}

// Of a word that other threads change in other bits meanwhile.
OUTRIDER_KERNEL_CODE void replace_bits(std::uint32_t* word, std::uint32_t mask,
                                       std::uint32_t bits) {
  atomicAnd(word, ~mask);
  atomicOr(word, bits & mask);
}

#else

inline std::uint32_t lane_index() { return EmulatedBlock::current().thread(); }
inline std::uint32_t block_x() { return EmulatedBlock::current().place()[0]; }
inline std::uint32_t block_y() { return EmulatedBlock::current().place()[1]; }
inline std::uint32_t block_z() { return EmulatedBlock::current().place()[2]; }
inline std::uint32_t blocks_along_x() { return EmulatedBlock::current().grid()[0]; }

inline void wait_for_block(std::uint32_t line = __builtin_LINE()) {
  EmulatedBlock::current().wait_for_block(line);
}

template <class Value>
Value from_below(Value value, std::uint32_t by, std::uint32_t line = __builtin_LINE()) {
  const std::uint32_t own = lane_index() % kWarp;
  return EmulatedBlock::current().shuffle(value, own + by < kWarp ? own + by : own, line);
}
template <class Value>
Value from_beside(Value value, std::uint32_t bits, std::uint32_t line = __builtin_LINE()) {
  return EmulatedBlock::current().shuffle(value, lane_index() % kWarp ^ bits, line);
}

template <class Memory>
Memory& block_memory() {
  return EmulatedBlock::current().memory<Memory>();
}

inline void replace_bits(std::uint32_t* word, std::uint32_t mask, std::uint32_t bits) {
  *word = (*word & ~mask) | (bits & mask);
}

#endif

}  // namespace outrider::device::cuda

#endif  // OUTRIDER_DEVICE_CUDA_KERNELS_LAUNCH_CUH_
