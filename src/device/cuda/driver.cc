// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "outrider/error.h"

namespace outrider::device::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

Driver open_driver() {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    throw Error("open CUDA", kLibrary, "NVIDIA's driver on this machine",
                why == nullptr ? "none" : why);
  }
  Driver driver = driver_of([&](const char* name) { return dlsym(library, name); });
  require_success(driver, driver.cuInit(0), "open CUDA", kLibrary);
  return driver;
}

}  // namespace

Driver driver_of(const std::function<void*(const char* name)>& find) {
  Driver driver;
#define OUTRIDER_LOAD(name, ...)                                                    \
  driver.name = reinterpret_cast<CuResult (*)(__VA_ARGS__)>(find(#name));           \
  if (driver.name == nullptr) {                                                     \
    throw Error("open CUDA", kLibrary, "a driver that has " #name, "an older one"); \
  }
  OUTRIDER_CUDA_FUNCTIONS(OUTRIDER_LOAD)
#undef OUTRIDER_LOAD
  return driver;
}

const Driver& nvidia_driver() {
  static const Driver driver = open_driver();
  return driver;
}

bool is_final(CuResult result) {
  return std::find(std::begin(kFinalResults), std::end(kFinalResults), result) !=
         std::end(kFinalResults);
}

std::string words_of(const Driver& driver, CuResult result) {
  const char* text = nullptr;
  if (driver.cuGetErrorString(result, &text) != kSuccess || text == nullptr) text = "unknown error";
  return fmt::format("CUDA says: {} ({})", text, result);
}

void require_success(const Driver& driver, CuResult result, const char* operation,
                     const std::string& object) {
  if (result == kSuccess) return;
  if (is_final(result)) throw LostDevice(operation, object, words_of(driver, result));
  if (result == kOutOfMemory) {
    throw NoDeviceMemory(operation, object, "out of the device's memory");
  }
  throw Error(operation, object, words_of(driver, result));
}

}  // namespace outrider::device::cuda
