// SPDX-License-Identifier: Apache-2.0
// The functions of NVIDIA's driver that a device needs, as a table: those of libcuda, opened at run
// time (the program is not linked to it and runs where there is none), or an emulated driver's
// (emulated_driver.h). Types and numbers are those of the CUDA driver API; its headers are not
// needed.
#ifndef OUTRIDER_DEVICE_CUDA_DRIVER_H_
#define OUTRIDER_DEVICE_CUDA_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace outrider::device::cuda {

using CuResult = int;  // 0: success
using CuDevice = int;
using CuPointer = std::uint64_t;
using CuContext = struct CuContextObject*;
using CuModule = struct CuModuleObject*;
using CuFunction = struct CuFunctionObject*;
using CuStream = struct CuStreamObject*;
using CuGraph = struct CuGraphObject*;
using CuGraphExec = struct CuGraphExecObject*;

inline constexpr CuResult kSuccess = 0;
inline constexpr CuResult kInvalidValue = 1;
inline constexpr CuResult kOutOfMemory = 2;
// Results after which a process can do no more work on the device. They may be given by whatever
// call comes after the work that failed.
inline constexpr CuResult kFinalResults[] = {
    214,  // uncorrectable error of memory
    220,  // and of NVLink
    226,  // contained
    700,  // illegal address
    702,  // launch timeout
    709,  // context is destroyed
    710,  // assert
    714,  // hardware stack error
    715,  // illegal instruction
    716,  // misaligned address
    717,  // invalid address space
    718,  // invalid program counter
    719,  // launch failed
    721,  // tensor memory leak
    810,  // MPS ended this process's work
    911,  // external device
    999,  // unknown
};
bool is_final(CuResult result);
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr int kCaptureRelaxed = 2;
// CUdevice_attribute.
inline constexpr int kAttributeGridY = 6;
inline constexpr int kAttributeIntegrated = 18;
inline constexpr int kAttributeCapabilityMajor = 75;
inline constexpr int kAttributeCapabilityMinor = 76;

// Members have the names that the driver exports.
// NOLINTBEGIN(readability-identifier-naming)
#define OUTRIDER_CUDA_FUNCTIONS(F)                                                                \
  F(cuInit, unsigned flags)                                                                       \
  F(cuDriverGetVersion, int* version)                                                             \
  F(cuGetErrorString, CuResult result, const char** text)                                         \
  F(cuDeviceGetCount, int* count)                                                                 \
  F(cuDeviceGet, CuDevice* device, int index)                                                     \
  F(cuDeviceGetName, char* name, int n_bytes, CuDevice device)                                    \
  F(cuDeviceGetAttribute, int* value, int attribute, CuDevice device)                             \
  F(cuDeviceTotalMem_v2, std::size_t* n_bytes, CuDevice device)                                   \
  F(cuDevicePrimaryCtxRetain, CuContext* context, CuDevice device)                                \
  F(cuDevicePrimaryCtxRelease_v2, CuDevice device)                                                \
  F(cuCtxPushCurrent_v2, CuContext context)                                                       \
  F(cuCtxPopCurrent_v2, CuContext* context)                                                       \
  F(cuModuleLoadData, CuModule* module, const void* image)                                        \
  F(cuModuleUnload, CuModule module)                                                              \
  F(cuModuleGetFunction, CuFunction* function, CuModule module, const char* name)                 \
  F(cuMemAlloc_v2, CuPointer* memory, std::size_t n_bytes)                                        \
  F(cuMemFree_v2, CuPointer memory)                                                               \
  F(cuMemcpyHtoDAsync_v2, CuPointer to, const void* from, std::size_t n_bytes, CuStream stream)   \
  F(cuMemcpyDtoHAsync_v2, void* to, CuPointer from, std::size_t n_bytes, CuStream stream)         \
  F(cuStreamCreate, CuStream* stream, unsigned flags)                                             \
  F(cuStreamDestroy_v2, CuStream stream)                                                          \
  F(cuStreamSynchronize, CuStream stream)                                                         \
  F(cuStreamBeginCapture_v2, CuStream stream, int mode)                                           \
  F(cuStreamEndCapture, CuStream stream, CuGraph* graph)                                          \
  F(cuGraphInstantiateWithFlags, CuGraphExec* program, CuGraph graph, unsigned long long flags)   \
  F(cuGraphDestroy, CuGraph graph)                                                                \
  F(cuGraphLaunch, CuGraphExec program, CuStream stream)                                          \
  F(cuGraphExecDestroy, CuGraphExec program)                                                      \
  F(cuLaunchKernel, CuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,       \
    unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, CuStream stream, \
    void** parameters, void** extra)

struct Driver {
#define OUTRIDER_DECLARE(name, ...) CuResult (*name)(__VA_ARGS__) = nullptr;
  OUTRIDER_CUDA_FUNCTIONS(OUTRIDER_DECLARE)
#undef OUTRIDER_DECLARE
  bool is_emulated = false;  // computes on the processor
};
// NOLINTEND(readability-identifier-naming)

// Of a library's functions, by their names. Throws Error where it has not all of them.
Driver driver_of(const std::function<void*(const char* name)>& find);

// libcuda of this machine, opened and initialised once for the process and kept. Throws Error where
// there is none, it lacks a function, or it finds no device.
const Driver& nvidia_driver();

// What the driver says of a result.
std::string words_of(const Driver& driver, CuResult result);

// Throws unless the result is kSuccess: LostDevice for a final one, NoDeviceMemory where memory is
// out, else Error. They say what was to be done, with what, and the driver's words.
void require_success(const Driver& driver, CuResult result, const char* operation,
                     const std::string& object);

}  // namespace outrider::device::cuda

#endif  // OUTRIDER_DEVICE_CUDA_DRIVER_H_
