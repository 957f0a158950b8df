// SPDX-License-Identifier: Apache-2.0
// The driver's table against NVIDIA's own header, where there is one: as many arguments of the same
// sizes, and the same numbers. And what is said where there is no driver.
#include "device/cuda/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <vector>

#include "device/open_device.h"
#include "outrider/error.h"

#if __has_include(<cuda.h>)
#include <cuda.h>
#endif

namespace outrider::device::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

#if __has_include(<cuda.h>)

template <class Ours, class Theirs>
constexpr bool is_like() {
  return sizeof(Ours) == sizeof(Theirs) &&
         std::is_pointer_v<Ours> == static_cast<bool>(std::is_pointer_v<Theirs>);
}

template <class... Ours, class Result, class... Theirs>
constexpr bool fits(CuResult (*)(Ours...), Result (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) == sizeof...(Theirs)) {
    return is_like<CuResult, Result>() && (is_like<Ours, Theirs>() && ...);
  } else {
    return false;
  }
}

TEST(CudaDriver, IsAsNvidiasHeaderHasIt) {
#define OUTRIDER_COMPARE(name, ...) \
  EXPECT_TRUE(fits(Driver{}.name, static_cast<decltype(&::name)>(nullptr))) << #name;
  OUTRIDER_CUDA_FUNCTIONS(OUTRIDER_COMPARE)
#undef OUTRIDER_COMPARE
  EXPECT_EQ(kSuccess, CUDA_SUCCESS);
  EXPECT_EQ(kInvalidValue, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
  EXPECT_EQ(kCaptureRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(kAttributeGridY, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
  EXPECT_EQ(kAttributeIntegrated, CU_DEVICE_ATTRIBUTE_INTEGRATED);
  EXPECT_EQ(kAttributeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  EXPECT_EQ(kAttributeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
}

// As its comments have them: "the process must be terminated and relaunched".
TEST(CudaDriver, KnowsFinalResults) {
  for (const CuResult result :
       {CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_NVLINK_UNCORRECTABLE, CUDA_ERROR_ILLEGAL_ADDRESS,
        CUDA_ERROR_LAUNCH_TIMEOUT, CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_ASSERT,
        CUDA_ERROR_HARDWARE_STACK_ERROR, CUDA_ERROR_ILLEGAL_INSTRUCTION,
        CUDA_ERROR_MISALIGNED_ADDRESS, CUDA_ERROR_INVALID_ADDRESS_SPACE, CUDA_ERROR_INVALID_PC,
        CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_UNKNOWN}) {
    EXPECT_TRUE(is_final(result)) << result;
  }
  for (const CuResult result : {CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY,
                                CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_NOT_FOUND}) {
    EXPECT_FALSE(is_final(result)) << result;
  }
}

#else

TEST(CudaDriver, IsAsNvidiasHeaderHasIt) { GTEST_SKIP() << "there is no cuda.h"; }

#endif

int answer() { return 42; }

TEST(CudaDriver, NeedsAllOfItsFunctions) {
  std::vector<std::string> names;
  const auto find = [&](const char* name) {
    names.emplace_back(name);
    return reinterpret_cast<void*>(&answer);
  };
  EXPECT_EQ(driver_of(find).cuInit(0), 42);
  const std::vector<std::string> all = names;
  EXPECT_GT(all.size(), 25U);
  for (const std::string& missing : all) {
    try {
      driver_of([&](const char* name) { return name == missing ? nullptr : find(name); });
      FAIL() << missing;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("a driver that has " + missing));
    }
  }
}

TEST(CudaDriver, IsMissedInOneLine) {
  try {
    nvidia_driver();
    GTEST_SKIP() << "NVIDIA's driver is there";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("[open CUDA] libcuda.so.1"));
    EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
  }
  EXPECT_THROW(open_device("cuda"), Error);
}

}  // namespace
}  // namespace outrider::device::cuda
