// SPDX-License-Identifier: Apache-2.0
// A device's check: it reports nothing if the bits are right, and otherwise what a driver computes
// wrongly.
#include "device/trials/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "device/host/host_device.h"
#include "device/trials/attend_trial.h"
#include "device/trials/trials.h"
#include "outrider/error.h"
#include "tests/support/faulty_device.h"

namespace outrider::device {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> failures(Device& device) {
  std::vector<std::string> failed;
  for (const CheckResult& result : check_device(device)) {
    if (!result.passed()) failed.push_back(result.what + ": " + result.trouble);
  }
  return failed;
}

TEST(DeviceCheck, FindsNothingOnTheHostInAnyOrder) {
  HostDevice in_order;
  HostDevice reversed(HostDevice::Order::reversed);
  EXPECT_THAT(failures(in_order), IsEmpty());
  EXPECT_THAT(failures(reversed), IsEmpty());
}

TEST(DeviceCheck, NamesTheKernelWhoseBitsAreWrong) {
  const std::pair<Kernel, const char*> kKernels[] = {{Kernel::quantize_rows, "quantize"},
                                                     {Kernel::product_int8, "product int8"},
                                                     {Kernel::product_int4, "product int4"},
                                                     {Kernel::rms_norm, "rms norm"},
                                                     {Kernel::layer_norm, "layer norm"},
                                                     {Kernel::cap_rows, "soft cap"},
                                                     {Kernel::activate, "activation"},
                                                     {Kernel::apply_rope, "apply_rope"},
                                                     {Kernel::norm_in_place, "norm of heads"},
                                                     {Kernel::gate, "silu"},
                                                     {Kernel::gate, "gelu"},
                                                     {Kernel::add_rows, "add rows"},
                                                     {Kernel::add_bias, "bias and scale"},
                                                     {Kernel::scale_rows, "bias and scale"},
                                                     {Kernel::copy_rows, "copy rows"},
                                                     {Kernel::best_of_rows, "largest of rows"},
                                                     {Kernel::store_rows, "store f32"},
                                                     {Kernel::store_rows, "store int8"},
                                                     {Kernel::move_slots, "move bf16"},
                                                     {Kernel::attend_bf16, "attention bf16"},
                                                     {Kernel::attend_f32, "attention f32"},
                                                     {Kernel::attend_int8, "attention int8"},
                                                     {Kernel::merge_splits, "attention"}};
  for (const auto& [kernel, name] : kKernels) {
    test::LyingDevice device(kernel);
    EXPECT_THAT(failures(device), Contains(AllOf(HasSubstr(name), HasSubstr("expected")))) << name;
  }
  test::LyingDevice device(Kernel::arithmetic);
  EXPECT_THAT(failures(device), Contains(HasSubstr("exponential")));
  EXPECT_FALSE(gives_known_answers(device, Function::native_fused));
}

// NaN equals NaN, so a trial with NaN results would pass on any device.
TEST(DeviceCheck, TrialsGiveNumbers) {
  const auto share_of_nan = [](const Trial& trial) {
    HostDevice host;
    const auto results = run_trial(host, trial);
    std::vector<float> floats(results.back().size() / sizeof(float));
    std::memcpy(floats.data(), results.back().data(), results.back().size());
    const auto n = std::count_if(floats.begin(), floats.end(), [](float x) { return x != x; });
    return static_cast<double>(n) / static_cast<double>(floats.size());
  };
  using kernels::KvKind;
  using kernels::WeightKind;
  const AttendTrialShape shape = {.n_heads = 4, .n_kv_heads = 2, .head_dim = 40, .n_keys = 1100};
  for (const KvKind kind : {KvKind::f32, KvKind::bf16, KvKind::int8}) {
    EXPECT_EQ(share_of_nan(attend_trial(kind, {4, 4}, shape, 1)), 0);
    AttendTrialShape infinite = shape;
    infinite.has_infinities = true;
    EXPECT_GT(share_of_nan(attend_trial(kind, {4, 4}, infinite, 1)), 0);
  }
  for (const WeightKind kind : {WeightKind::int8, WeightKind::int4}) {
    EXPECT_EQ(share_of_nan(product_trial(kind, {1, 1}, 40, 320, 1)), 0);
    const double share = share_of_nan(product_trial(kind, {16, 16}, 40, 320, 1));
    EXPECT_GT(share, 0);
    EXPECT_LE(share, 0.25);
  }
  EXPECT_EQ(share_of_nan(norm_trial({4, 4}, 320, 1)), 0);
  EXPECT_EQ(share_of_nan(arithmetic_trial(Function::round_even, 4096, 1)), 0);
  EXPECT_LT(share_of_nan(arithmetic_trial(Function::fused, 1 << 20, 1)), 0.1);
}

TEST(DeviceCheck, SaysWhatErrorsItMet) {
  test::FaultyDevice device;
  device.run_out_at(0, true);
  EXPECT_THAT(failures(device), AllOf(Not(IsEmpty()), Each(HasSubstr("memory"))));
}

TEST(DeviceCheck, CoversEveryKernel) {
  class Watching : public HostDevice {
   public:
    std::unique_ptr<Program> record(std::span<const Step> steps) override {
      for (const Step& step : steps) seen.insert(step.kernel);
      return HostDevice::record(steps);
    }
    std::set<Kernel> seen;
  };
  Watching device;
  check_device(device);
  EXPECT_EQ(device.seen.size(), std::size_t{kKernels});
}

}  // namespace
}  // namespace outrider::device
