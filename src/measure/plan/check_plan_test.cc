// SPDX-License-Identifier: Apache-2.0
// Compares the formula with measured passes: counts and structure of the result. Times of a model
// this small on a shared machine mean nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <filesystem>

#include "outrider/error.h"
#include "outrider/speed_plan.h"

namespace outrider {
namespace {

TEST(CheckPlan, PredictsEveryPassThatItMeasures) {
  const auto model = Model::load(std::filesystem::path(OUTRIDER_SOURCE_DIR) / "models" / "drafter",
                                 {.threads = 1});
  CheckOptions options;
  options.rows = {1, 4};
  options.contexts = {0, 30, 100000};
  options.rounds = 1;
  const PlanCheck check = check_plan(*model, options);
  ASSERT_EQ(check.passes.size(), 6U);
  const int longest = model->summary().context_length - 4;
  EXPECT_EQ(check.passes[2].context, 30);
  EXPECT_EQ(check.passes[4].context, longest);
  for (const CheckedPass& pass : check.passes) {
    EXPECT_GT(pass.measured_seconds, 0);
    EXPECT_GT(pass.predicted_seconds, 0);
    EXPECT_GT(pass.roofline_seconds, 0);
    EXPECT_TRUE(std::isfinite(pass.ratio()));
    EXPECT_EQ(pass.calibrated, pass.context == longest);
  }
  EXPECT_EQ(check.n_predicted(), 4);
  EXPECT_EQ(check.n_near(1e9), 4);
  EXPECT_EQ(check.n_near(0), 0);
  EXPECT_EQ(check.n_near_roofline(1e9), 4);
  EXPECT_TRUE(check.device.is_measured());
  EXPECT_GT(check.device.bandwidth_bytes_per_second, 0);
  EXPECT_GT(check.device.row_elements_per_second, 0);
  for (std::size_t i = 1; i < check.device.products.size(); ++i) {
    EXPECT_GT(check.device.products[i].rows, check.device.products[i - 1].rows);
  }
}

// Passes of one row are always measured too, so attention has its two passes.
TEST(CheckPlan, TakesAttentionFromTwoPasses) {
  const auto model = Model::load(std::filesystem::path(OUTRIDER_SOURCE_DIR) / "models" / "drafter",
                                 {.threads = 1});
  CheckOptions options;
  options.rows = {4};
  options.contexts = {30};
  options.rounds = 1;
  const PlanCheck check = check_plan(*model, options);
  ASSERT_EQ(check.passes.size(), 2U);
  EXPECT_EQ(check.passes[0].rows, 1);
  EXPECT_TRUE(check.passes[0].calibrated);
  EXPECT_TRUE(check.passes[1].calibrated);
  // Infinite if noise leaves nothing for it, never negative.
  EXPECT_GT(check.device.attention_ops_per_second, 0);
  EXPECT_GT(check.device.kv_elements_per_second, 0);
}

TEST(CheckPlan, RefusesWhatCannotBeMeant) {
  const auto model = Model::load(std::filesystem::path(OUTRIDER_SOURCE_DIR) / "models" / "drafter",
                                 {.threads = 1});
  CheckOptions options;
  options.contexts = {};
  EXPECT_THROW(check_plan(*model, options), UsageError);
  options = {};
  options.rows = {4, 2};
  EXPECT_THROW(check_plan(*model, options), UsageError);
  options = {};
  options.rounds = 0;
  EXPECT_THROW(check_plan(*model, options), UsageError);
}

}  // namespace
}  // namespace outrider
