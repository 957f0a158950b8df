// SPDX-License-Identifier: Apache-2.0
// Drivers that fail: wrong arithmetic, wrong kernels, no memory, a lost device. A layer between the
// loader and the software driver causes the faults (vulkan_fault_layer.cc).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/barriers.h"
#include "device/trials/check.h"
#include "device/trials/known_answers.h"
#include "device/trials/row_trials.h"
#include "device/vulkan/test_devices.h"
#include "outrider/error.h"
#include "tests/support/vulkan_faults.h"

namespace outrider::device {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class VulkanDriver : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::VulkanFaults::are_built()) GTEST_SKIP() << "no layer that breaks drivers";
    faults_.emplace();
    found_ = find_test_device();
    if (!found_.why_none.empty()) GTEST_SKIP() << found_.why_none;
  }

  std::unique_ptr<VulkanDevice> open() { return open_vulkan(found_.instance, found_.index); }
  // Opens a device without a check of its capabilities, which takes a software driver long.
  std::unique_ptr<VulkanDevice> begin(const VulkanChoice& choice = {}) {
    return std::make_unique<VulkanDevice>(found_.instance, found_.index, choice);
  }
  static std::string refusal(Device& device, Kernel kernel, std::uint32_t form) {
    Step step;
    step.kernel = kernel;
    step.variant = form;
    try {
      require_known_answers(device, {&step, 1});
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }

  std::optional<test::VulkanFaults> faults_;
  FoundTestDevice found_;
};

// Numbers of SPIR-V's operations.
constexpr int kAdd = 129;
constexpr int kSubtract = 131;
constexpr int kMultiply = 133;
constexpr int kDivide = 136;

std::string breaks(const char* word, int from, int to) {
  return std::string("break ") + word + " " + std::to_string(from) + " " + std::to_string(to);
}

// Native operations that the driver computes wrongly are not used, so that all bits are still
// right.
TEST_F(VulkanDriver, WhoseDivisionIsWrongDividesByIntegers) {
  if (!open()->ways().divides_natively) GTEST_SKIP() << "the driver's is not used anyway";
  faults_->set(breaks("divided", kDivide, kMultiply));
  const auto device = open();
  EXPECT_FALSE(device->ways().divides_natively);
  EXPECT_THAT(device->facts().tier, HasSubstr("division by integers"));
  EXPECT_TRUE(gives_known_answers(*device, Function::divide));
  EXPECT_FALSE(gives_known_answers(*device, Function::native_divide));
  EXPECT_EQ(refusal(*device, Kernel::gate, static_cast<std::uint32_t>(GateActivation::silu)), "");
}

// A driver that compiles one operation of one kernel wrongly.
TEST_F(VulkanDriver, WhoseKernelIsWrongIsRefusedByItsName) {
  struct Broken {
    std::string fault;
    Kernel kernel;
    std::uint32_t form;
    const char* name;
  };
  const Broken kBroken[] = {
      {breaks("Cosines", kSubtract, kAdd), Kernel::apply_rope, 1, "apply_rope"},
      {breaks("x_scales", kMultiply, kAdd), Kernel::product_int8, 1, "product int8, 1 row"},
      {breaks("slots_at", kSubtract, kAdd), Kernel::attend_f32, 0, "attention f32"},
      {breaks("Places", kMultiply, kAdd), Kernel::store_rows, 2, "store int8"},
  };
  const auto device = open();
  for (const auto& [fault, kernel, form, name] : kBroken) {
    faults_->set(fault);  // a kernel is compiled at its first use
    EXPECT_THAT(refusal(*device, kernel, form),
                AllOf(HasSubstr("[check device]"), HasSubstr(device->facts().name), HasSubstr(name),
                      HasSubstr("expected"), Not(HasSubstr("\n"))));
  }
  EXPECT_EQ(refusal(*device, Kernel::copy_rows, 1), "");
}

TEST_F(VulkanDriver, WithoutMemoryGoesOnOnceThereIsSome) {
  for (const bool sees_memory : {true, false}) {
    const auto device = begin({.sees_memory = sees_memory});
    const auto before = device->allocate(4096);
    faults_->set("no memory");
    try {
      device->allocate(1 << 20);
      FAIL() << "there was memory";
    } catch (const NoDeviceMemory& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("[allocate] 1048576 bytes"),
                                      HasSubstr("out of the device's memory")));
    }
    EXPECT_EQ(device->failure(), "");
    faults_->set("");
    EXPECT_EQ(difference_from_host(*device, copy_trial({3, 4}, 70, true, 1)), "");
    std::vector<std::byte> bytes(4096, std::byte{7});
    device->upload(bytes, whole(*before));
    std::vector<std::byte> back(4096);
    device->download(whole(*before), back);
    EXPECT_EQ(back, bytes);
  }
}

// It also ends cleanly: the rest of it is destroyed at the end of each round.
TEST_F(VulkanDriver, ThatLosesItsDeviceSaysSoFromThenOn) {
  for (const char* fault : {"lost at submit", "lost at wait"}) {
    const auto device = begin();
    const auto buffer = device->allocate(1024);
    std::vector<std::byte> bytes(1024);
    const Trial trial = copy_trial({3, 4}, 70, true, 1);
    faults_->set(fault);
    EXPECT_THROW((void)run_trial(*device, trial), LostDevice) << fault;
    EXPECT_THAT(device->failure(), AllOf(HasSubstr(device->facts().name), HasSubstr("was lost")));
    faults_->set("");
    EXPECT_THROW((void)run_trial(*device, trial), LostDevice) << fault;
    EXPECT_THROW(device->upload(bytes, whole(*buffer)), LostDevice) << fault;
    EXPECT_THROW(device->download(whole(*buffer), bytes), LostDevice) << fault;
    // Another device of the same driver is not affected.
    EXPECT_EQ(difference_from_host(*begin(), trial), "") << fault;
    faults_->set(fault);
    EXPECT_THROW(open(), LostDevice) << fault;
    faults_->set("");
  }
}

// The driver says it once, where nothing can be thrown: to who frees memory or a program.
TEST_F(VulkanDriver, ThatLosesItsDeviceWhileMemoryIsFreedSaysSoFromThenOn) {
  const auto device = begin();
  auto buffer = device->allocate(1024);
  faults_->set("lost at wait");
  buffer = nullptr;
  faults_->set("");
  EXPECT_THAT(device->failure(), HasSubstr("was lost"));
  EXPECT_THROW((void)run_trial(*device, gate_trial({3, 4}, 70, 1)), LostDevice);
}

// A software driver runs steps in order, so that a missing barrier changes no bits there.
TEST_F(VulkanDriver, RecordsTheBarriersThatAreDerived) {
  const auto device = begin();
  const auto x = device->allocate(1024);
  const auto y = device->allocate(1024);
  const auto z = device->allocate(1024);
  const auto sum = [](const Buffer& from, const Buffer& to) {
    return arithmetic(Function::native_add, 8, whole(from), whole(from), whole(from), whole(to));
  };
  const auto n_recorded = [&](const std::vector<Step>& steps) {
    const int before = test::VulkanFaults::n_barriers();
    EXPECT_GE(before, 0);
    const auto program = device->record(steps);
    return test::VulkanFaults::n_barriers() - before;
  };
  const int n_around = n_recorded({sum(*x, *y)});
  for (const std::vector<Step>& steps : {std::vector<Step>{sum(*x, *y), sum(*x, *z)},
                                         {sum(*x, *y), sum(*y, *z)},
                                         {sum(*x, *y), sum(*y, *z), sum(*z, *x), sum(*z, *y)},
                                         {sum(*x, *y), sum(*y, *x), sum(*x, *y)}}) {
    EXPECT_EQ(n_recorded(steps), n_around + static_cast<int>(derive_barriers(steps).size()));
  }
}

// A barrier that is left out is found by the validation layer, which follows reads and writes
// itself. (It does not report two dispatches that write the same buffer.)
TEST(VulkanBarriers, AreMissedWhereTheyAreLeftOut) {
  if (!test::VulkanFaults::are_built()) GTEST_SKIP() << "no layer that breaks drivers";
  if (!has_validation_layer()) GTEST_SKIP() << "no validation layer (scripts/install-deps gpu)";
  const test::VulkanFaults faults;
  const FoundTestDevice found = find_test_device(true);
  if (!found.why_none.empty()) GTEST_SKIP() << found.why_none;
  const auto device = std::make_unique<VulkanDevice>(found.instance, found.index, VulkanChoice{});
  const auto x = device->allocate(1024);
  const auto y = device->allocate(1024);
  const auto z = device->allocate(1024);
  const auto sum = [](const Buffer& from, const Buffer& to) {
    return arithmetic(Function::native_add, 8, whole(from), whole(from), whole(from), whole(to));
  };
  const std::vector<Step> kApart = {sum(*x, *y), sum(*x, *z)};
  const std::vector<Step> kReadAfterWrite = {sum(*x, *y), sum(*y, *z)};
  const std::vector<Step> kWriteAfterRead = {sum(*x, *y), sum(*z, *x)};
  for (const char* fault : {"", "no barriers between"}) {
    faults.set(fault);
    for (const auto& [steps, hazard] :
         {std::pair(kApart, ""), std::pair(kReadAfterWrite, "READ_AFTER_WRITE"),
          std::pair(kWriteAfterRead, "WRITE_AFTER_READ")}) {
      const std::size_t n_before = found.instance->messages().size();
      device->wait(device->submit(*device->record(steps)));
      const auto& messages = found.instance->messages();
      if (*fault == '\0' || *hazard == '\0') {
        EXPECT_EQ(messages.size(), n_before) << messages.back();
      } else {
        ASSERT_GT(messages.size(), n_before) << hazard;
        EXPECT_THAT(messages.back(), HasSubstr(hazard));
      }
    }
  }
}

}  // namespace
}  // namespace outrider::device
