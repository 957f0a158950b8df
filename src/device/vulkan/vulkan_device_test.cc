// SPDX-License-Identifier: Apache-2.0
// The Vulkan runtime: memory, replays, barriers, limits, the validation layer, and the shaders'
// code.
#include "device/vulkan/vulkan_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "device/host/host_device.h"
#include "device/trials/check.h"
#include "device/trials/row_trials.h"
#include "device/trials/trials.h"
#include "device/vulkan/shader_code.h"
#include "device/vulkan/test_devices.h"
#include "outrider/error.h"
#include "tests/support/nightly.h"

namespace outrider::device {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class VulkanRuntime : public ::testing::Test {
 protected:
  void SetUp() override {
    device_ = test_device();
    if (device_ == nullptr) GTEST_SKIP() << why_no_test_device();
  }

  std::unique_ptr<Buffer> with(Device& device, const std::vector<float>& numbers) {
    auto buffer = device.allocate(numbers.size() * sizeof(float));
    device.upload(std::as_bytes(std::span(numbers)), whole(*buffer));
    return buffer;
  }
  std::vector<float> held(Device& device, const Buffer& buffer) {
    std::vector<float> numbers(buffer.n_bytes() / sizeof(float));
    device.download(whole(buffer), std::as_writable_bytes(std::span(numbers)));
    return numbers;
  }

  std::unique_ptr<VulkanDevice> device_;
};

// Otherwise every test of a device would be skipped.
TEST(VulkanDrivers, AreFoundWhereOneIsInstalled) {
  namespace fs = std::filesystem;
  const fs::path drivers = "/usr/share/vulkan/icd.d";
  if (std::getenv("VK_ICD_FILENAMES") != nullptr || std::getenv("VK_DRIVER_FILES") != nullptr) {
    GTEST_SKIP() << "other drivers are named";
  }
  bool has_lavapipe = false;
  if (fs::exists(drivers)) {
    for (const auto& file : fs::directory_iterator(drivers)) {
      has_lavapipe |= file.path().filename().string().starts_with("lvp_icd");
    }
  }
  if (!has_lavapipe) GTEST_SKIP() << "lavapipe is not installed (scripts/install-deps gpu)";
  EXPECT_EQ(why_no_test_device(), "");
}

TEST_F(VulkanRuntime, PassesItsCheck) {
  for (const CheckResult& result : check_device(*device_)) {
    EXPECT_EQ(result.trouble, "") << result.what;
  }
}

// With any part of the device's memory mapped.
TEST_F(VulkanRuntime, CarriesBytesThereAndBack) {
  for (const bool sees_memory : {true, false}) {
    const auto device = test_device({.sees_memory = sees_memory});
    std::vector<std::uint32_t> words(std::size_t{5} << 20);  // more than one copy holds
    std::iota(words.begin(), words.end(), 7U);
    const auto buffer = device->allocate(words.size() * sizeof(std::uint32_t));
    device->upload(std::as_bytes(std::span(words)), whole(*buffer));
    const std::vector<std::uint32_t> few = {1, 2, 3};
    device->upload(std::as_bytes(std::span(few)), {buffer.get(), 1024, 12});
    std::copy(few.begin(), few.end(), words.begin() + 256);
    std::vector<std::uint32_t> back(words.size());
    device->download(whole(*buffer), std::as_writable_bytes(std::span(back)));
    EXPECT_EQ(back, words) << "sees memory: " << sees_memory;
    std::vector<std::uint32_t> part(100);
    device->download({buffer.get(), 512, 400}, std::as_writable_bytes(std::span(part)));
    EXPECT_TRUE(std::equal(part.begin(), part.end(), words.begin() + 128));
    EXPECT_EQ(difference_from_host(*device, gate_trial({3, 4}, 70, 1)), "");
  }
}

// Each step reads the previous one's output; the program is run again on its results.
TEST_F(VulkanRuntime, RunsAProgramAgainOnWhatTheBuffersHoldThen) {
  constexpr int kNumbers = 1000;
  constexpr int kSteps = 30;
  const auto x = with(*device_, std::vector<float>(kNumbers, 1.0F));
  const auto y = with(*device_, std::vector<float>(kNumbers, 0.0F));
  const auto one = with(*device_, std::vector<float>(kNumbers, 1.0F));
  std::vector<Step> steps;
  for (int i = 0; i < kSteps; ++i) {
    const Range from = i % 2 == 0 ? whole(*x) : whole(*y);
    const Range to = i % 2 == 0 ? whole(*y) : whole(*x);
    steps.push_back(arithmetic(Function::native_add, kNumbers, from, whole(*one), whole(*one), to));
  }
  const auto program = device_->record(steps);
  device_->submit(*program);
  device_->submit(*program);
  device_->wait(device_->submit(*program));
  EXPECT_THAT(held(*device_, *x), Each(1.0F + 3 * kSteps));
  const std::vector<float> hundreds(kNumbers, 100.0F);
  device_->upload(std::as_bytes(std::span(hundreds)), whole(*x));
  device_->submit(*program);
  EXPECT_THAT(held(*device_, *x), Each(100.0F + kSteps));
}

// A program is recorded for eight rows; each run sets the actual number.
TEST_F(VulkanRuntime, RunsAProgramWithAnyNumberOfRows) {
  constexpr int kMax = 8;
  constexpr std::uint32_t kWidth = 96;
  Trial trial = gate_trial({kMax, kMax}, kWidth, 5);
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<Range> ranges;
  for (const TrialBuffer& buffer : trial.buffers) {
    buffers.push_back(device_->allocate(buffer.bytes.size()));
    ranges.push_back(whole(*buffers.back()));
  }
  const auto program = device_->record(trial.steps(ranges));
  for (const int n : {3, 8, 0, 1}) {
    trial.buffers[0] = gate_trial({n, kMax}, kWidth, 5).buffers[0];
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      device_->upload(trial.buffers[i].bytes, ranges[i]);
    }
    device_->wait(device_->submit(*program));
    HostDevice host;
    std::vector<std::vector<std::byte>> got(ranges.size());
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      if (!trial.buffers[i].is_output) continue;
      got[i].resize(ranges[i].n_bytes);
      device_->download(ranges[i], got[i]);
    }
    EXPECT_EQ(difference(trial, run_trial(host, trial), got), "") << n << " rows";
  }
}

TEST_F(VulkanRuntime, RefusesWhatADeviceHasNoRoomFor) {
  const std::size_t most = device_->facts().max_buffer_bytes;
  for (const std::size_t n_bytes : {std::size_t{0}, most + 1, SIZE_MAX}) {
    try {
      device_->allocate(n_bytes);
      FAIL() << n_bytes;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("[allocate]")) << n_bytes;
    }
  }
  EXPECT_EQ(difference_from_host(*device_, gate_trial({1, 1}, 70, 1)), "");
}

TEST_F(VulkanRuntime, SaysThatADeviceIsNotThere) {
  EXPECT_THROW(open_vulkan(the_test_device().instance, 1000), Error);
}

TEST_F(VulkanRuntime, LetsBuffersAndProgramsEndWhileTheyAreInUse) {
  const auto program_on = [&] {
    const auto x = with(*device_, std::vector<float>(100000, 1.0F));
    const auto y = with(*device_, std::vector<float>(100000, 1.0F));
    const std::vector<Step> steps = {
        arithmetic(Function::exponential, 100000, whole(*x), whole(*x), whole(*x), whole(*y))};
    const auto program = device_->record(steps);
    device_->submit(*program);
  };
  program_on();
  EXPECT_EQ(difference_from_host(*device_, gate_trial({1, 1}, 70, 1)), "");
}

TEST(VulkanValidation, LayerHasNothingToSay) {
  if (!has_validation_layer()) GTEST_SKIP() << "no validation layer (scripts/install-deps gpu)";
  const FoundTestDevice found = find_test_device(true);
  if (!found.why_none.empty()) GTEST_SKIP() << found.why_none;
  for (const bool sees_memory : {true, false}) {
    for (const bool uses_dots : {true, false}) {
      // By day the second of them; passes are validated with the first (DeviceValidation).
      if ((!sees_memory || uses_dots) && !test::nightly()) continue;
      const auto device = open_vulkan(found.instance, found.index,
                                      {.uses_dots = uses_dots, .sees_memory = sees_memory});
      for (const CheckResult& result : check_device(*device)) {
        EXPECT_EQ(result.trouble, "") << result.what;
      }
    }
  }
  EXPECT_THAT(found.instance->messages(), IsEmpty());
}

// The layer is installed and reports: an allocation that Vulkan forbids gives a message.
TEST(VulkanValidation, LayerIsHeard) {
  if (!has_validation_layer()) GTEST_SKIP() << "no validation layer (scripts/install-deps gpu)";
  const FoundTestDevice found = find_test_device(true);
  if (!found.why_none.empty()) GTEST_SKIP() << found.why_none;
  const auto core =
      std::make_shared<VulkanCore>(found.instance, found.instance->devices()[found.index], true);
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = 0;  // must be above 0
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  Owned<VkBuffer> buffer(*core, core->vk().vkDestroyBuffer);
  core->vk().vkCreateBuffer(core->handle(), &info, nullptr, buffer.out());
  EXPECT_THAT(found.instance->messages(), ::testing::Contains(HasSubstr("size")));
}

TEST(VulkanShaders, AreValidWithEveryFloatMode) {
  if (std::system("command -v spirv-val >/dev/null") != 0) {
    GTEST_SKIP() << "no spirv-val (scripts/install-deps gpu)";
  }
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("outrider-shader-" + std::to_string(getpid()));
  constexpr FloatModes kAll = {true, true, true};
  EXPECT_GE(shader_codes().size(), 2U * kKernels);
  for (const ShaderCode& code : shader_codes()) {
    for (const FloatModes& modes : {FloatModes{}, kAll}) {
      const std::vector<std::uint32_t> words = with_float_modes(code.words, modes, modes);
      std::ofstream(file, std::ios::binary)
          .write(reinterpret_cast<const char*>(words.data()),
                 static_cast<std::streamsize>(words.size() * sizeof(std::uint32_t)));
      EXPECT_EQ(std::system(("spirv-val --target-env vulkan1.2 " + file.string()).c_str()), 0)
          << code.kernel << ", double " << code.uses_double << ", dots " << code.uses_dots;
    }
  }
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace outrider::device
