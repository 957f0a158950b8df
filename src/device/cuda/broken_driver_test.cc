// SPDX-License-Identifier: Apache-2.0
// A driver that is broken in one function at one call: what is told, what is left behind, and
// whether the device goes on.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/cuda/emulated_driver.h"
#include "device/trials/row_trials.h"
#include "outrider/error.h"

namespace outrider::device::cuda {
namespace {

constexpr CuResult kIllegalAddress = 700;
constexpr std::uint64_t kNoWords[1] = {};
constexpr Cubin kAnyCubin[] = {{75, kNoWords}};

// What the broken function does: at its `at`-th call, and at no other.
struct Fault {
  int at = -1;
  CuResult result = kSuccess;
  bool does_its_work = false;  // all the same
  int n_calls = 0;

  bool is_now() { return n_calls++ == at; }
  bool was_met() const { return n_calls > at; }
};
Fault fault;

struct Breakable {
  std::string name;
  void (*broken_in)(Driver& driver);
};

std::vector<Breakable> breakables() {
  std::vector<Breakable> all;
#define OUTRIDER_BREAKABLE(name, ...)                                           \
  all.push_back({#name, [](Driver& driver) {                                    \
                   driver.name = [](auto... arguments) -> CuResult {            \
                     const bool now = fault.is_now();                           \
                     if (now && !fault.does_its_work) return fault.result;      \
                     const CuResult own = emulated_driver().name(arguments...); \
                     return now ? fault.result : own;                           \
                   };                                                           \
                 }});
  OUTRIDER_CUDA_FUNCTIONS(OUTRIDER_BREAKABLE)
#undef OUTRIDER_BREAKABLE
  return all;
}

bool names_one_of(const std::string& name, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* const word) { return name.find(word) != std::string::npos; });
}
bool gives_back(const std::string& name) {
  return names_one_of(name, {"Free", "Destroy", "Unload", "Release", "Pop"});
}

enum class Told { nothing, error, no_memory, lost };

template <class Function>
Told told_by(const Function& function) {
  try {
    function();
  } catch (const LostDevice&) {
    return Told::lost;
  } catch (const NoDeviceMemory&) {
    return Told::no_memory;
  } catch (const Error&) {
    return Told::error;
  }
  return Told::nothing;
}

struct Outcome {
  int n_met = 0;
  int n_told = 0;
};

// Breaks every call of the function in turn.
Outcome break_all_calls(const Breakable& one, CuResult result, Told expected) {
  Outcome outcome;
  for (int at = 0;; ++at) {
    SCOPED_TRACE(one.name + " at call " + std::to_string(at));
    fault = {.at = at,
             .result = result,
             .does_its_work = gives_back(one.name) || one.name == "cuStreamEndCapture"};
    Driver driver = emulated_driver();
    one.broken_in(driver);
    const EmulatedUse before = emulated_use();
    std::unique_ptr<CudaDevice> device;
    const auto run = [&] {
      EXPECT_EQ(difference_from_host(*device, gate_trial({3, 4}, 70, 1)), "");
    };
    const Told told = told_by([&] {
      device = std::make_unique<CudaDevice>(driver, 2, kAnyCubin);
      run();
    });
    if (device != nullptr && fault.was_met()) {
      // A destructor may have met what nobody was told yet.
      const Told later = device->failure().empty() ? Told::nothing : Told::lost;
      EXPECT_TRUE(told != Told::lost || later == Told::lost);
      EXPECT_EQ(told_by(run), later);
      EXPECT_EQ(told_by([&] { device->allocate(64); }), later);
    }
    device = nullptr;
    EmulatedUse after = emulated_use();
    if (one.name == "cuStreamSynchronize") after.early_frees = before.early_frees;
    EXPECT_EQ(after, before);
    if (!fault.was_met()) break;
    ++outcome.n_met;
    if (told == Told::nothing) continue;
    ++outcome.n_told;
    EXPECT_EQ(told, expected);
  }
  return outcome;
}

TEST(BrokenDriver, IsToldApartAndLeavesNothingBehind) {
  int n_met = 0;
  for (const Breakable& one : breakables()) {
    if (one.name == "cuCtxPushCurrent_v2") continue;  // without it nothing can be given back
    for (const auto& [result, told] :
         {std::pair(kInvalidValue, Told::error), std::pair(kOutOfMemory, Told::no_memory),
          std::pair(kIllegalAddress, Told::lost)}) {
      // Work that cannot be waited for is the device's end.
      const bool waits = one.name == "cuStreamSynchronize";
      const Outcome outcome = break_all_calls(one, result, waits ? Told::lost : told);
      n_met += outcome.n_met;
      if (gives_back(one.name)) continue;
      EXPECT_EQ(outcome.n_told, outcome.n_met) << one.name;
    }
  }
  EXPECT_GT(n_met, 3 * 100);
}

TEST(BrokenDriver, TellsThatAContextCannotBeHad) {
  static CuResult result = kSuccess;
  Driver driver = emulated_driver();
  driver.cuCtxPushCurrent_v2 = [](CuContext context) {
    return result == kSuccess ? emulated_driver().cuCtxPushCurrent_v2(context) : result;
  };
  const EmulatedUse before = emulated_use();
  result = kInvalidValue;
  EXPECT_EQ(told_by([&] { CudaDevice(driver, 2, kAnyCubin); }), Told::error);
  EXPECT_EQ(emulated_use(), before);
  result = kSuccess;
  {
    CudaDevice device(driver, 2, kAnyCubin);
    const auto buffer = device.allocate(64);
    std::vector<std::byte> bytes(64);
    const auto program = device.record({});
    const std::vector<std::function<void()>> uses = {
        [&] { device.allocate(64); }, [&] { device.upload(bytes, whole(*buffer)); },
        [&] { device.download(whole(*buffer), bytes); }, [&] { device.submit(*program); }};
    for (const auto& [broken, told] :
         {std::pair(kInvalidValue, Told::error), std::pair(kSuccess, Told::nothing),
          std::pair(kIllegalAddress, Told::lost), std::pair(kSuccess, Told::lost)}) {
      result = broken;
      for (const auto& use : uses) EXPECT_EQ(told_by(use), told);
    }
  }
  EXPECT_EQ(emulated_use(), before);
}

}  // namespace
}  // namespace outrider::device::cuda
