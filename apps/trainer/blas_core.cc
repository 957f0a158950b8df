// SPDX-License-Identifier: Apache-2.0
#include "apps/trainer/blas_core.h"

#if defined(__linux__) && defined(__x86_64__)
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>
#endif

namespace outrider::cli {

#if defined(__linux__) && defined(__x86_64__)
namespace {

constexpr const char* kCoreVariable = "OPENBLAS_CORETYPE";

// OpenBLAS's names of cores whose kernels use at least AVX2.
constexpr std::string_view kRecentCores[] = {"Haswell",  "Excavator",  "Zen",
                                             "SkylakeX", "Cooperlake", "SapphireRapids"};

// Empty if no library of this process is OpenBLAS.
std::string_view core_in_use() {
  void* const symbol = ::dlsym(RTLD_DEFAULT, "openblas_get_corename");
  if (symbol == nullptr) return {};
  return reinterpret_cast<const char* (*)()>(symbol)();
}

// The core whose kernels use most of this processor's features; null if the current ones may stay.
const char* quickest_core() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return nullptr;
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
                          __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has_avx512 ? "SkylakeX" : "Haswell";
}

}  // namespace

void take_fitting_blas_core(char** argv) {
  if (std::getenv(kCoreVariable) != nullptr) return;
  const std::string_view in_use = core_in_use();
  if (in_use.empty() || std::find(std::begin(kRecentCores), std::end(kRecentCores), in_use) !=
                            std::end(kRecentCores)) {
    return;
  }
  const char* const core = quickest_core();
  if (core == nullptr || ::setenv(kCoreVariable, core, 0) != 0) return;
  ::execv("/proc/self/exe", argv);
  // If refused, the slow kernels are still correct.
}

#else

void take_fitting_blas_core(char**) {}

#endif

}  // namespace outrider::cli
