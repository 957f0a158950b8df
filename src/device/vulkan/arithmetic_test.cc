// SPDX-License-Identifier: Apache-2.0
// Compares the arithmetic of Vulkan devices with the processor's, bit by bit, for every way of
// computing it.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "device/trials/trials.h"
#include "device/vulkan/test_devices.h"

namespace outrider::device {
namespace {

constexpr int kMillion = 1 << 20;

void expect_same_bits(Device& device, Function function, int n_random) {
  for (std::uint32_t seed = 1; seed <= 2; ++seed) {
    EXPECT_EQ(difference_from_host(device, arithmetic_trial(function, n_random, seed)), "")
        << "function " << static_cast<int>(function) << " on " << device.facts().name << " ("
        << device.facts().tier << "), seed " << seed;
  }
}

class VulkanArithmetic : public ::testing::TestWithParam<FusedWay> {
 protected:
  void SetUp() override {
    device_ = test_device();
    if (device_ == nullptr) GTEST_SKIP() << why_no_test_device();
    if (GetParam() == FusedWay::by_double && !device_->means().has_double) {
      GTEST_SKIP() << device_->facts().name << " has no doubles";
    }
    device_->use({.fused = GetParam()});
  }

  std::unique_ptr<VulkanDevice> device_;
};

TEST_P(VulkanArithmetic, FusesAsTheProcessorDoes) {
  expect_same_bits(*device_, Function::fused, kMillion);
}

TEST_P(VulkanArithmetic, GivesTheProcessorsExponentials) {
  expect_same_bits(*device_, Function::exponential, kMillion);
  expect_same_bits(*device_, Function::exponential_of_negative, kMillion);
}

INSTANTIATE_TEST_SUITE_P(Ways, VulkanArithmetic,
                         ::testing::Values(FusedWay::by_double, FusedWay::by_integers),
                         [](const auto& info) {
                           return info.param == FusedWay::by_double ? "ByDouble" : "ByIntegers";
                         });

class VulkanOperations : public ::testing::Test {
 protected:
  void SetUp() override {
    device_ = test_device();
    if (device_ == nullptr) GTEST_SKIP() << why_no_test_device();
  }
  std::unique_ptr<VulkanDevice> device_;
};

TEST_F(VulkanOperations, DivideAndTakeRootsByIntegers) {
  expect_same_bits(*device_, Function::divide_by_integers, kMillion);
  expect_same_bits(*device_, Function::root_by_integers, kMillion);
}

TEST_F(VulkanOperations, DivideAndTakeRootsAsTheyWereOpened) {
  expect_same_bits(*device_, Function::divide, kMillion);
  expect_same_bits(*device_, Function::root, kMillion);
}

TEST_F(VulkanOperations, RoundToEven) {
  expect_same_bits(*device_, Function::round_even, kMillion);
}

TEST_F(VulkanOperations, ConvertAll16BitFloats) {
  expect_same_bits(*device_, Function::from_f16, 0);
  expect_same_bits(*device_, Function::from_bf16, 0);
}

TEST_F(VulkanOperations, RoundTo16BitFloats) {
  expect_same_bits(*device_, Function::to_f16, kMillion);
  expect_same_bits(*device_, Function::to_bf16, kMillion);
}

TEST_F(VulkanOperations, AddAndMultiplyAsIeeeSays) {
  expect_same_bits(*device_, Function::native_add, kMillion);
  expect_same_bits(*device_, Function::native_multiply, kMillion);
}

}  // namespace
}  // namespace outrider::device
