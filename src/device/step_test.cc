// SPDX-License-Identifier: Apache-2.0
// Steps that a device refuses to record.
#include "device/step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "device/attend_steps.h"
#include "device/cache_steps.h"
#include "device/device.h"
#include "device/host/host_device.h"
#include "device/kernel_steps.h"
#include "outrider/error.h"

namespace outrider::device {
namespace {

using ::testing::HasSubstr;

std::string objection(const Step& step, std::uint32_t max_groups = 1000) {
  DeviceFacts facts;
  facts.max_groups = max_groups;
  try {
    require_sound(step, facts);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

class SoundSteps : public ::testing::Test {
 protected:
  Step sum(const Range& a, const Range& b, const Range& c, const Range& y) {
    return arithmetic(Function::native_add, 1, a, b, c, y);
  }

  HostDevice device_;
  std::unique_ptr<Buffer> in_ = device_.allocate(1024);
  std::unique_ptr<Buffer> out_ = device_.allocate(1024);
  Range a_ = whole(*in_);
  Range y_ = whole(*out_);
};

TEST_F(SoundSteps, Pass) {
  EXPECT_EQ(objection(sum(a_, a_, a_, y_)), "");
  EXPECT_EQ(objection(sum({in_.get(), 0, 256}, {in_.get(), 0, 256}, {in_.get(), 0, 256},
                          {in_.get(), 256, 256})),
            "");
}

TEST_F(SoundSteps, RefuseRangesThatOverlapWhatIsWritten) {
  EXPECT_THAT(objection(sum(a_, a_, a_, a_)), HasSubstr("overlap"));
  EXPECT_THAT(objection(sum(a_, a_, {out_.get(), 512, 4}, y_)), HasSubstr("overlap"));
}

TEST_F(SoundSteps, RefuseRangesBeyondTheirBuffer) {
  EXPECT_THAT(objection(sum({in_.get(), 0, 1025}, a_, a_, y_)), HasSubstr("1024 bytes"));
  EXPECT_THAT(objection(sum({in_.get(), 512, 513}, a_, a_, y_)), HasSubstr("within"));
  EXPECT_THAT(objection(sum({in_.get(), 2048, 4}, a_, a_, y_)), HasSubstr("within"));
  EXPECT_THAT(objection(sum({in_.get(), 256, SIZE_MAX}, a_, a_, y_)), HasSubstr("within"));
  EXPECT_THAT(objection(sum({in_.get(), 0, 0}, a_, a_, y_)), HasSubstr("empty"));
  EXPECT_THAT(objection(sum({nullptr, 0, 4}, a_, a_, y_)), HasSubstr("empty"));
}

TEST_F(SoundSteps, RefuseRangesThatAreNotAligned) {
  EXPECT_THAT(objection(sum({in_.get(), 4, 4}, a_, a_, y_)), HasSubstr("256"));
}

TEST_F(SoundSteps, RefuseAnotherNumberOfRanges) {
  Step step = sum(a_, a_, a_, y_);
  step.uses.pop_back();
  EXPECT_THAT(objection(step), HasSubstr("4 ranges"));
}

TEST_F(SoundSteps, RefuseMoreWorkgroupsThanTheDeviceTakes) {
  Step step = sum(a_, a_, a_, y_);
  step.grid = {1, 11, 1};
  EXPECT_THAT(objection(step, 10), HasSubstr("at most 10"));
  EXPECT_EQ(objection(step, 11), "");
}

template <class Make>
std::string refusal(const Make& make) {
  try {
    make();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST_F(SoundSteps, AreMadeOfKnownKindsOnly) {
  const Rows rows = {a_, 1};
  EXPECT_THAT(refusal([&] {
                product(rows, {kernels::WeightKind::q4_k, a_, 16, 256}, {}, y_);
              }),
              HasSubstr("q4_k"));
  EXPECT_EQ(refusal([&] { product(rows, {kernels::WeightKind::int4, a_, 16, 256}, {}, y_); }), "");
  EXPECT_THAT(refusal([&] { attend(rows, {.head_dim = kMaxHeadDim + 1}, {}); }), HasSubstr("257"));
  EXPECT_THAT(refusal([&] { store_rows(rows, {.head_dim = kMaxHeadDim + 1}, {}); }),
              HasSubstr("257"));
  EXPECT_EQ(refusal([&] { attend(rows, {.head_dim = kMaxHeadDim}, {}); }), "");
}

}  // namespace
}  // namespace outrider::device
