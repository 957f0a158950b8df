// SPDX-License-Identifier: Apache-2.0
// The host code of CUDA devices on the emulated driver: memory, replays, limits, errors. And which
// cubin a device gets.
#include "device/cuda/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "device/cuda/emulated_driver.h"
#include "device/cuda/entries.h"
#include "device/host/host_device.h"
#include "device/open_device.h"
#include "device/trials/check.h"
#include "device/trials/row_trials.h"
#include "outrider/devices.h"
#include "outrider/error.h"

namespace outrider::device::cuda {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::uint64_t kNoWords[1] = {};
constexpr Cubin kAnyCubin[] = {{75, kNoWords}};

class EmulatedCuda : public ::testing::Test {
 protected:
  std::unique_ptr<Buffer> with(const std::vector<float>& numbers) {
    auto buffer = device_->allocate(numbers.size() * sizeof(float));
    device_->upload(std::as_bytes(std::span(numbers)), whole(*buffer));
    return buffer;
  }
  std::vector<float> held(const Buffer& buffer) {
    std::vector<float> numbers(buffer.n_bytes() / sizeof(float));
    device_->download(whole(buffer), std::as_writable_bytes(std::span(numbers)));
    return numbers;
  }

  std::unique_ptr<CudaDevice> device_ = open_emulated(ThreadOrder::ascending);
};

TEST_F(EmulatedCuda, PassesItsCheck) {
  for (const ThreadOrder order : kThreadOrders) {
    const auto device = open_emulated(order);
    for (const CheckResult& result : check_device(*device)) {
      EXPECT_EQ(result.trouble, "") << result.what << ", " << name_of(order);
    }
  }
}

TEST_F(EmulatedCuda, CallsItselfEmulated) {
  EXPECT_THAT(device_->facts().name, StartsWith("emulated CUDA"));
  EXPECT_EQ(device_->facts().kind, DeviceKind::software);
  EXPECT_THAT(open_device("cuda-emulated:2")->facts().name, HasSubstr("shuffled"));
  EXPECT_THROW(open_device("cuda-emulated:3"), UsageError);
  EXPECT_THROW(open_device("cuda-emulated:01"), UsageError);
}

// Apart from the others: it loads the drivers of Vulkan, in which LeakSanitizer finds leaks.
TEST(ListedDevices, AreNoneOfTheTests) {
  for (const DeviceSummary& device : list_devices().devices) {
    EXPECT_THAT(device.title, Not(HasSubstr("emulated")));
  }
}

// Each step reads what the one before wrote; the program is run again on what it left.
TEST_F(EmulatedCuda, RunsAProgramAgainOnWhatTheBuffersHoldThen) {
  constexpr int kNumbers = 1000;
  constexpr int kSteps = 6;
  const auto x = with(std::vector<float>(kNumbers, 1.0F));
  const auto y = with(std::vector<float>(kNumbers, 0.0F));
  const auto one = with(std::vector<float>(kNumbers, 1.0F));
  std::vector<Step> steps;
  for (int i = 0; i < kSteps; ++i) {
    const Range from = i % 2 == 0 ? whole(*x) : whole(*y);
    const Range to = i % 2 == 0 ? whole(*y) : whole(*x);
    steps.push_back(arithmetic(Function::native_add, kNumbers, from, whole(*one), whole(*one), to));
  }
  const auto program = device_->record(steps);
  EXPECT_THAT(held(*x), Each(1.0F));  // recording runs nothing
  device_->submit(*program);
  device_->wait(device_->submit(*program));
  EXPECT_THAT(held(*x), Each(1.0F + 2 * kSteps));
  const std::vector<float> hundreds(kNumbers, 100.0F);
  device_->upload(std::as_bytes(std::span(hundreds)), whole(*x));
  device_->submit(*program);  // a download waits by itself
  EXPECT_THAT(held(*x), Each(100.0F + kSteps));
}

// A program that runs again runs in other shuffled orders, and each of its steps in one of its own.
TEST_F(EmulatedCuda, GivesEachLaunchAnotherSeed) {
  const auto x = with(std::vector<float>(8, 1.0F));
  const auto y = with(std::vector<float>(8, 0.0F));
  const auto one = with(std::vector<float>(8, 1.0F));
  const auto add = [&](const Buffer& from, const Buffer& to) {
    return arithmetic(Function::native_add, 8, whole(from), whole(*one), whole(*one), whole(to));
  };
  const auto once = device_->record(std::vector<Step>{add(*x, *y)});
  const auto thrice = device_->record(std::vector<Step>{add(*x, *y), add(*y, *x), add(*x, *y)});
  std::vector<std::uint32_t> seeds;
  for (const Program* program : {once.get(), once.get(), thrice.get(), thrice.get(), once.get()}) {
    device_->wait(device_->submit(*program));
    seeds.push_back(last_emulated_seed());
  }
  EXPECT_THAT(seeds, ElementsAre(1, 2, 5, 8, 9));
}

TEST_F(EmulatedCuda, CarriesPartsOfBuffers) {
  std::vector<std::uint32_t> words(1000);
  std::iota(words.begin(), words.end(), 7U);
  const auto buffer = device_->allocate(words.size() * sizeof(std::uint32_t));
  device_->upload(std::as_bytes(std::span(words)), whole(*buffer));
  const std::vector<std::uint32_t> few = {1, 2, 3};
  device_->upload(std::as_bytes(std::span(few)), {buffer.get(), 1024, 12});
  std::copy(few.begin(), few.end(), words.begin() + 256);
  std::vector<std::uint32_t> part(200);
  device_->download({buffer.get(), 512, 800}, std::as_writable_bytes(std::span(part)));
  EXPECT_TRUE(std::equal(part.begin(), part.end(), words.begin() + 128));
}

// Copies wait in the emulated stream until somebody waits for them.
TEST_F(EmulatedCuda, HasCopiedWhenItReturns) {
  std::vector<float> numbers(1000, 1.0F);
  const auto buffer = device_->allocate(numbers.size() * sizeof(float));
  device_->upload(std::as_bytes(std::span(numbers)), whole(*buffer));
  numbers.assign(numbers.size(), 2.0F);
  device_->download(whole(*buffer), std::as_writable_bytes(std::span(numbers)));
  EXPECT_THAT(numbers, Each(1.0F));
  EXPECT_EQ(emulated_use().waiting, 0);
}

TEST_F(EmulatedCuda, WaitsForWhatWasSubmitted) {
  const auto x = with(std::vector<float>(64, 1.0F));
  const auto y = with(std::vector<float>(64, 1.0F));
  const Step step =
      arithmetic(Function::exponential, 64, whole(*x), whole(*x), whole(*x), whole(*y));
  const auto program = device_->record({&step, 1});
  const Ticket first = device_->submit(*program);
  EXPECT_EQ(emulated_use().waiting, 1);
  device_->wait(first);
  EXPECT_EQ(emulated_use().waiting, 0);
  const Ticket second = device_->submit(*program);
  device_->wait(first);  // it has ended
  EXPECT_EQ(emulated_use().waiting, 1);
  device_->wait(second);
  EXPECT_EQ(emulated_use().waiting, 0);
}

// One thread after another; each has the device's context no longer than it needs it.
TEST_F(EmulatedCuda, IsUsedFromAnyThread) {
  const auto other = open_emulated(ThreadOrder::descending);
  const auto use_both = [&] {
    const int before = emulated_use().current;
    EXPECT_EQ(difference_from_host(*device_, gate_trial({3, 4}, 70, 1)), "");
    EXPECT_EQ(difference_from_host(*other, gate_trial({3, 4}, 70, 2)), "");
    EXPECT_EQ(emulated_use().current, before);
  };
  use_both();
  std::thread(use_both).join();
  EXPECT_EQ(emulated_use().current, 0);
}

TEST_F(EmulatedCuda, LeavesOutAStepWithAnEmptyGrid) {
  const auto x = with(std::vector<float>(64, 1.0F));
  const auto y = with(std::vector<float>(64, 7.0F));
  std::vector<Step> steps(
      4, arithmetic(Function::native_add, 64, whole(*x), whole(*x), whole(*x), whole(*y)));
  for (std::size_t axis = 0; axis < 3; ++axis) steps[axis].grid[axis] = 0;
  device_->wait(device_->submit(*device_->record({steps.data(), 3})));
  EXPECT_THAT(held(*y), Each(7.0F));
  const auto program = device_->record(steps);
  device_->wait(device_->submit(*program));
  EXPECT_THAT(held(*y), Each(2.0F));  // 1 + 1
}

TEST_F(EmulatedCuda, RunsAProgramOfNoSteps) {
  const auto program = device_->record({});
  device_->wait(device_->submit(*program));
}

TEST_F(EmulatedCuda, RefusesWhatADeviceHasNoRoomFor) {
  for (const std::size_t n_bytes : {std::size_t{0}, device_->facts().max_buffer_bytes + 1}) {
    try {
      device_->allocate(n_bytes);
      FAIL() << n_bytes;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("[allocate]")) << n_bytes;
    }
  }
  EXPECT_EQ(difference_from_host(*device_, gate_trial({1, 1}, 70, 1)), "");
}

TEST_F(EmulatedCuda, SaysThatADeviceIsNotThere) {
  EXPECT_THROW(facts_of(emulated_driver(), 3), Error);
  EXPECT_THROW(facts_of(emulated_driver(), -1), Error);
}

TEST_F(EmulatedCuda, LetsBuffersAndProgramsEndWhileTheyAreInUse) {
  const auto program_on = [&] {
    const auto x = with(std::vector<float>(1000, 1.0F));
    const auto y = with(std::vector<float>(1000, 1.0F));
    const std::vector<Step> steps = {
        arithmetic(Function::exponential, 1000, whole(*x), whole(*x), whole(*x), whole(*y))};
    const auto program = device_->record(steps);
    device_->submit(*program);
  };
  const EmulatedUse before = emulated_use();
  program_on();
  EXPECT_EQ(emulated_use(), before);  // nothing was freed too early, and all was
  EXPECT_EQ(difference_from_host(*device_, gate_trial({1, 1}, 70, 1)), "");
}

// An error of the driver's while a program is recorded leaves the device as it was.
TEST_F(EmulatedCuda, GoesOnAfterAStepThatCannotBeRecorded) {
  const auto x = with(std::vector<float>(64, 1.0F));
  const auto y = with(std::vector<float>(64, 1.0F));
  Step step = arithmetic(Function::exponential, 64, whole(*x), whole(*x), whole(*x), whole(*y));
  step.kernel = Kernel::product_int8;  // of 5 uses
  EXPECT_THROW(device_->record({&step, 1}), Error);
  step.uses.push_back({whole(*y), Access::read});
  step.uses[3].access = Access::read;
  step.variant = 3;
  EXPECT_THROW(device_->record({&step, 1}), Error);
  EXPECT_EQ(difference_from_host(*device_, gate_trial({1, 1}, 70, 1)), "");
}

// Ends after the program's main function has.
TEST_F(EmulatedCuda, MayLiveAsLongAsTheProgram) {
  static const std::unique_ptr<CudaDevice> device = open_emulated(ThreadOrder::shuffled);
  static const std::unique_ptr<Buffer> buffer = device->allocate(64);
  EXPECT_EQ(buffer->n_bytes(), 64U);
}

// A device whose driver is broken in one function.
TEST(FaultyCuda, TellsThatMemoryIsUsedUp) {
  Driver driver = emulated_driver();
  driver.cuMemAlloc_v2 = [](CuPointer*, std::size_t) { return kOutOfMemory; };
  CudaDevice device(driver, 0, kAnyCubin);
  EXPECT_THROW(device.allocate(64), NoDeviceMemory);
  EXPECT_EQ(device.failure(), "");
}

TEST(FaultyCuda, StaysLostOnceItIs) {
  static bool is_broken = false;
  Driver driver = emulated_driver();
  driver.cuStreamSynchronize = [](CuStream stream) {
    return is_broken ? 700 : emulated_driver().cuStreamSynchronize(stream);
  };
  CudaDevice device(driver, 0, kAnyCubin);
  const auto program = device.record({});
  const Ticket ticket = device.submit(*program);
  is_broken = true;
  EXPECT_EQ(device.failure(), "");
  EXPECT_THROW(device.wait(ticket), LostDevice);
  is_broken = false;
  EXPECT_THAT(device.failure(), HasSubstr("lost"));
  EXPECT_THROW(device.submit(*program), LostDevice);
  EXPECT_THROW(device.wait(ticket), LostDevice);
}

TEST(CudaCubins, FitDevicesOfTheirMajorVersion) {
  static constexpr std::uint64_t kWords[1] = {};
  const std::vector<Cubin> all = {{75, kWords}, {80, kWords},  {86, kWords},
                                  {90, kWords}, {100, kWords}, {120, kWords}};
  const auto architecture = [&](int major, int minor) {
    const Cubin* const cubin = cubin_for(all, major, minor);
    return cubin == nullptr ? 0 : cubin->architecture;
  };
  EXPECT_EQ(architecture(7, 0), 0);
  EXPECT_EQ(architecture(7, 5), 75);
  EXPECT_EQ(architecture(8, 0), 80);
  EXPECT_EQ(architecture(8, 5), 80);
  EXPECT_EQ(architecture(8, 9), 86);
  EXPECT_EQ(architecture(9, 0), 90);
  EXPECT_EQ(architecture(10, 3), 100);
  EXPECT_EQ(architecture(12, 1), 120);
  EXPECT_EQ(architecture(13, 0), 0);
}

TEST(CudaCubins, AreRefusedWhereNoneFits) {
  static constexpr std::uint64_t kWords[1] = {};
  const std::vector<Cubin> hopper = {{90, kWords}};
  const auto why = [](std::span<const Cubin> all) -> std::string {
    try {
      const CudaDevice device(emulated_driver(), 0, all);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(why(hopper), AllOf(HasSubstr("9.0"), HasSubstr("a device of 7.5")));
  EXPECT_THAT(why({}), HasSubstr("nvcc was missing"));
}

// Of three devices the first is too old.
TEST(CudaCubins, ChooseTheFirstDeviceThatTheyAreFor) {
  static constexpr std::uint64_t kWords[1] = {};
  static int n_devices = 3;
  Driver driver = emulated_driver();
  driver.cuDeviceGetCount = [](int* n) {
    *n = n_devices;
    return kSuccess;
  };
  driver.cuDeviceGetAttribute = [](int* value, int which, CuDevice device) {
    const CuResult result = emulated_driver().cuDeviceGetAttribute(value, which, device);
    if (which == kAttributeCapabilityMajor && device == 0) *value = 5;
    return result;
  };
  const auto chosen = [&](std::span<const Cubin> cubins) -> std::string {
    try {
      return std::to_string(first_usable_device(driver, cubins));
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(chosen(kAnyCubin), "1");
  const std::vector<Cubin> hopper = {{90, kWords}};
  EXPECT_THAT(chosen(hopper),
              AllOf(HasSubstr("a GPU that can be used"), HasSubstr("3 of which the first"),
                    HasSubstr("a device of 5.5")));
  n_devices = 1;
  EXPECT_THAT(chosen(hopper),
              AllOf(HasSubstr("[open device] cuda-emulated:0"), HasSubstr("a device of 5.5")));
  n_devices = 0;
  EXPECT_THAT(chosen(hopper), HasSubstr("got none"));
}

TEST(CudaCubins, NeedADriverThatIsAsNew) {
  static constexpr std::uint64_t kWords[1] = {};
  static constexpr Cubin kOf13[] = {{75, kWords, 13000}};
  static int release = 0;
  Driver driver = emulated_driver();
  driver.cuModuleLoadData = [](CuModule*, const void*) { return 200; };
  driver.cuDriverGetVersion = [](int* version) {
    *version = release;
    return kSuccess;
  };
  const auto why = [&](int of_driver) -> std::string {
    release = of_driver;
    try {
      const CudaDevice device(driver, 0, kOf13);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(why(12040), AllOf(HasSubstr("[load kernels] cuda-emulated:0"),
                                HasSubstr("a driver for CUDA 13"), HasSubstr("CUDA 12.4")));
  EXPECT_THAT(why(13010), HasSubstr("CUDA says"));
}

// What the build wrote into the program, which only a GPU would load.
TEST(CudaCubins, AreWholeImagesOfAllKernels) {
  if (cubins().empty()) GTEST_SKIP() << "nvcc was missing";
  constexpr std::uint16_t kCudaMachine = 190;
  for (const Cubin& cubin : cubins()) {
    SCOPED_TRACE(cubin.architecture);
    EXPECT_GE(cubin.release, 11000);
    const auto bytes = std::as_bytes(cubin.words);
    const std::string image(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto number_at = [&](std::size_t at, auto number) {
      std::memcpy(&number, image.data() + at, sizeof number);
      return std::size_t{number};
    };
    ASSERT_GE(image.size(), 64U);
    EXPECT_EQ(image.substr(0, 4), "\177ELF");
    EXPECT_EQ(number_at(18, std::uint16_t{}), kCudaMachine);
    const std::size_t end_of_programs =
        number_at(32, std::uint64_t{}) +
        number_at(54, std::uint16_t{}) * number_at(56, std::uint16_t{});
    const std::size_t end_of_sections =
        number_at(40, std::uint64_t{}) +
        number_at(58, std::uint16_t{}) * number_at(60, std::uint16_t{});
    EXPECT_EQ(image.size(), (std::max(end_of_programs, end_of_sections) + 7) / 8 * 8);
    for (const Entry& entry : entries()) {
      const std::string name = std::string(1, '\0') + entry.name + std::string(1, '\0');
      EXPECT_NE(image.find(name), std::string::npos) << entry.name;
    }
    EXPECT_NE(image.find("sm_" + std::to_string(cubin.architecture)), std::string::npos);
  }
}

TEST(CudaEntries, HaveEveryKernelOnce) {
  for (int kernel = 0; kernel < kKernels; ++kernel) {
    int n = 0;
    for (const Entry& entry : entries()) n += entry.kernel == static_cast<Kernel>(kernel) ? 1 : 0;
    EXPECT_GE(n, 1) << device::facts_of(static_cast<Kernel>(kernel)).name;
  }
  Step step;
  step.kernel = Kernel::product_int4;
  for (const std::uint32_t variant : {1U, 2U, 4U, 8U}) {
    step.variant = variant;
    EXPECT_THAT(entries()[entry_of(step)].name, HasSubstr("int4_" + std::to_string(variant)));
  }
}

}  // namespace
}  // namespace outrider::device::cuda
