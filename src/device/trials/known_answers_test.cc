// SPDX-License-Identifier: Apache-2.0
// Trials before a device is trusted: every kernel is tried in every form that passes use, and a
// device with a wrong kernel is refused by name.
#include "device/trials/known_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device/host/host_device.h"
#include "device/kernel_steps.h"
#include "outrider/error.h"
#include "tests/support/faulty_device.h"

namespace outrider::device {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Step step_of(Kernel kernel, std::uint32_t form = 1) {
  Step step;
  step.kernel = kernel;
  step.variant = form;
  return step;
}

std::string refusal(Device& device, const Step& step) {
  try {
    require_known_answers(device, {&step, 1});
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

// Every form that make_step's functions give to a kernel.
std::vector<Step> all_forms() {
  std::vector<Step> steps;
  for (int kernel = 0; kernel < kKernels; ++kernel) {
    switch (static_cast<Kernel>(kernel)) {
      case Kernel::product_int8:
      case Kernel::product_int4:
        for (const std::uint32_t form : {1U, 2U, 4U, 8U}) {
          steps.push_back(step_of(static_cast<Kernel>(kernel), form));
        }
        break;
      case Kernel::best_of_rows:
      case Kernel::attend_f32:
      case Kernel::attend_bf16:
      case Kernel::attend_int8:
        for (const std::uint32_t form : {0U, 1U}) {
          steps.push_back(step_of(static_cast<Kernel>(kernel), form));
        }
        break;
      case Kernel::gate:
      case Kernel::activate:
      case Kernel::store_rows:
      case Kernel::move_slots:
        for (const std::uint32_t form : {0U, 1U, 2U}) {
          steps.push_back(step_of(static_cast<Kernel>(kernel), form));
        }
        break;
      case Kernel::arithmetic:
        steps.push_back(step_of(Kernel::arithmetic, static_cast<std::uint32_t>(Function::fused)));
        break;
      default:
        steps.push_back(step_of(static_cast<Kernel>(kernel)));
    }
  }
  return steps;
}

// Each trial runs the kernel in its form, and detects a wrong bit there. merge_splits is tried
// after the attention that precedes it.
TEST(KnownAnswers, FindAWrongBitOfEveryKernelInEveryForm) {
  for (const Step& step : all_forms()) {
    SCOPED_TRACE(facts_of(step.kernel).name + std::string(", form ") +
                 std::to_string(step.variant));
    test::LyingDevice liar(step.kernel, step.variant);
    const Step asked = step.kernel == Kernel::merge_splits ? step_of(Kernel::attend_f32) : step;
    const std::string why = refusal(liar, asked);
    EXPECT_THAT(why, AllOf(HasSubstr("[check device] liar"), HasSubstr("expected"),
                           HasSubstr("--check"), Not(HasSubstr("\n"))));
    EXPECT_EQ(refusal(liar, asked), why);  // the next one is refused, too
  }
}

TEST(KnownAnswers, OfAProductAreThoseOfAllItsForms) {
  test::LyingDevice liar(Kernel::product_int8, 4);
  EXPECT_THAT(refusal(liar, step_of(Kernel::product_int8, 1)),
              HasSubstr("product int8, 4 rows together"));
  EXPECT_EQ(refusal(liar, step_of(Kernel::product_int4, 1)), "");
}

TEST(KnownAnswers, AreTriedOnceOnADevice) {
  test::FaultyDevice device;
  for (const Step& step : all_forms()) EXPECT_EQ(refusal(device, step), "");
  const std::size_t n_run = device.running_calls().size();
  EXPECT_GT(n_run, 100U);
  for (const Step& step : all_forms()) EXPECT_EQ(refusal(device, step), "");
  EXPECT_EQ(device.running_calls().size(), n_run);
}

TEST(KnownAnswers, PassOnWhatADeviceThrows) {
  test::FaultyDevice device;
  const Step step = step_of(Kernel::apply_rope);
  device.run_out_at(2);
  EXPECT_THROW(require_known_answers(device, {&step, 1}), NoDeviceMemory);
  EXPECT_EQ(refusal(device, step), "");
  device.lose_at(0);
  const Step other = step_of(Kernel::gate, 0);
  EXPECT_THROW(require_known_answers(device, {&other, 1}), LostDevice);
}

}  // namespace
}  // namespace outrider::device
