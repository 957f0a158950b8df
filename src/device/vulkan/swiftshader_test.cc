// SPDX-License-Identifier: Apache-2.0
// The lowest tier of devices on a second driver: SwiftShader, which is part of Chromium. It has no
// doubles and treats subnormal numbers as zero, so its bits differ for numbers that small.
// Integers, places and orders are right on it, and models are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/trials/attend_trial.h"
#include "device/trials/cache_trials.h"
#include "device/trials/check.h"
#include "device/trials/known_answers.h"
#include "device/trials/row_trials.h"
#include "device/trials/trials.h"
#include "device/vulkan/test_devices.h"
#include "outrider/error.h"
#include "tests/support/vulkan_faults.h"

namespace outrider::device {
namespace {

using ::testing::HasSubstr;

// Its file for the loader, from Debian's chromium-common or from OUTRIDER_TEST_SWIFTSHADER. Empty:
// not found.
std::string icd_file() {
  const char* const named = std::getenv("OUTRIDER_TEST_SWIFTSHADER");
  const std::string file = named != nullptr ? named : "/usr/lib/chromium/vk_swiftshader_icd.json";
  return std::filesystem::exists(file) ? file : "";
}

// A device whose kernels are compiled once.
class SwiftShader : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::string file = icd_file();
    if (file.empty()) {
      why_none_ = "no SwiftShader (scripts/install-deps swiftshader)";
      return;
    }
    // The second name is that of newer loaders.
    const test::ScopedVariable drivers("VK_ICD_FILENAMES", file);
    const test::ScopedVariable newer("VK_DRIVER_FILES", file);
    // Opened with integers only, which is also the result of a normal opening: detecting that
    // takes long. An error fails the tests.
    instance_ = VulkanInstance::create();
    device_ = std::make_unique<VulkanDevice>(instance_, 0, VulkanChoice{});
  }
  static void TearDownTestSuite() {
    device_ = nullptr;
    instance_ = nullptr;
  }
  void SetUp() override {
    if (device_ == nullptr) GTEST_SKIP() << why_none_;
  }

  static void expect_same_bits(const Trial& trial, const char* what) {
    EXPECT_EQ(difference_from_host(*device_, trial), "") << what;
  }

  inline static std::shared_ptr<VulkanInstance> instance_;
  inline static std::unique_ptr<VulkanDevice> device_;
  inline static std::string why_none_;
};

TEST_F(SwiftShader, IsUsedWithIntegersAlone) {
  EXPECT_THAT(device_->facts().name, HasSubstr("SwiftShader"));
  EXPECT_EQ(device_->facts().kind, DeviceKind::software);
  EXPECT_FALSE(device_->means().has_double);
  EXPECT_THAT(open_vulkan(instance_, 0)->facts().tier, HasSubstr("fma by integers"));
}

TEST_F(SwiftShader, FusesDividesAndConvertsByIntegers) {
  for (const Function function :
       {Function::fused_by_integers, Function::divide_by_integers, Function::root_by_integers,
        Function::from_f16, Function::from_bf16, Function::to_f16, Function::to_bf16}) {
    EXPECT_TRUE(gives_known_answers(*device_, function)) << static_cast<int>(function);
  }
}

TEST_F(SwiftShader, PutsRowsKeysAndValuesIntoTheirPlaces) {
  using kernels::KvKind;
  for (const TrialRows& rows : {TrialRows{1, 1}, TrialRows{5, 8}, TrialRows{0, 2}}) {
    expect_same_bits(copy_trial(rows, 70, false, 1), "copies");
    expect_same_bits(copy_trial(rows, 70, true, 2), "picked copies");
    for (const KvKind kv : {KvKind::f32, KvKind::bf16}) {
      const CacheShape shape = {.kv = kv, .n_kv_heads = 2, .head_dim = 18};
      expect_same_bits(store_trial(shape, rows, false, 3), "new keys and values");
    }
    for (const KvKind kv : {KvKind::f32, KvKind::bf16, KvKind::int8}) {
      const CacheShape shape = {.kv = kv, .n_kv_heads = 2, .head_dim = 18};
      expect_same_bits(move_trial(shape, rows, 4), "moves");
    }
  }
}

TEST_F(SwiftShader, MultipliesIntegersExactly) {
  using kernels::WeightKind;
  for (const TrialRows& rows : {TrialRows{1, 1}, TrialRows{5, 8}}) {
    expect_same_bits(quantize_trial(rows, 100, 5), "quantised rows");
    expect_same_bits(product_trial(WeightKind::int8, rows, 37, 100, 6), "products with int8");
    expect_same_bits(product_trial(WeightKind::int4, rows, 37, 100, 7), "products with int4");
    const CacheShape cache = {.kv = kernels::KvKind::int8, .n_kv_heads = 2, .head_dim = 18};
    expect_same_bits(store_trial(cache, rows, false, 8), "new keys and values in int8");
    // A seed for which no result is subnormal.
    expect_same_bits(
        attend_trial(kernels::KvKind::int8, rows,
                     {.n_heads = 4, .n_kv_heads = 2, .head_dim = 24, .n_keys = 1100}, 10),
        "attention over int8");
  }
}

// It cannot give the same bits, and therefore no text is written.
TEST_F(SwiftShader, IsRefusedForTextsSinceItLosesSubnormalNumbers) {
  EXPECT_FALSE(gives_known_answers(*device_, Function::native_multiply));
  Step step;
  step.kernel = Kernel::rms_norm;
  try {
    require_known_answers(*device_, {&step, 1});
    FAIL() << "it was trusted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("[check device]"));
    EXPECT_THAT(error.what(), HasSubstr("rms norm"));
  }
}

}  // namespace
}  // namespace outrider::device
