// SPDX-License-Identifier: Apache-2.0
#include "train/losses/block_losses.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/support/gradient_differences.h"
#include "tests/support/near.h"

namespace outrider::train {
namespace {

using test::near;
using torch::Tensor;

constexpr double kTolerance = 1e-12;  // a few operations in double on numbers of order one

Tensor row(const std::vector<double>& values) { return torch::tensor(values, torch::kFloat64); }

void expect_row(const Tensor& given, const std::vector<double>& expected) {
  ASSERT_EQ(given.numel(), static_cast<std::int64_t>(expected.size()));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(
        near(given.flatten()[static_cast<std::int64_t>(i)].item<double>(), expected[i], kTolerance))
        << "at " << i;
  }
}

TEST(BlockLosses, EarlySlotsCountMost) {
  expect_row(decaying_weights(3, 4, torch::kFloat64), {1, std::exp(-0.25), std::exp(-0.5)});
}

// Probabilities of 0.5, 0.25 and 0.8; smoothed with one half: 0.75, 0.625 and 0.9. Their products
// are 0.75, 0.46875 and 0.421875.
TEST(BlockLosses, DPaceIsWhatASlotAddsToTheAcceptedLength) {
  const Tensor losses = -torch::log(row({0.5, 0.25, 0.8}));
  const Tensor all = torch::ones({3}, torch::kBool);
  expect_row(d_pace_weights(losses, all), {1.640625, 0.890625, 0.421875});
  // Without the last slot, which has no effect then.
  const Tensor two = torch::tensor({true, true, false});
  expect_row(d_pace_weights(losses, two), {1.21875, 0.46875, 0});
  // Rows do not affect each other's weights.
  const Tensor both = d_pace_weights(torch::stack({losses, losses}), torch::stack({all, two}));
  expect_row(both, {1.640625, 0.890625, 0.421875, 1.21875, 0.46875, 0});
  // Without smoothing they are the derivative of the accepted length with respect to minus the
  // losses.
  const Tensor own = losses.clone().requires_grad_();
  accepted_length(torch::exp(-own)).backward();
  expect_row(-own.grad(), {0.725, 0.225, 0.1});
  expect_row(d_pace_weights(losses, all, 0), {0.725, 0.225, 0.1});
}

// The loss's gradient equals the weights, which are treated as constants.
TEST(BlockLosses, DPaceWeightsHaveNoGradient) {
  const Tensor losses = row({0.3, 1.1, 0.7}).requires_grad_();
  const Tensor weights = d_pace_weights(losses, torch::ones({3}, torch::kBool));
  EXPECT_FALSE(weights.requires_grad());
  (weights * losses).sum().backward();
  EXPECT_TRUE(torch::equal(losses.grad(), weights));
}

TEST(BlockLosses, TheDistanceOfDistributions) {
  // 0.5, 0.3 and 0.2 from 0.2, 0.3 and 0.5.
  const Tensor logits = torch::log(row({0.5, 0.3, 0.2})) + 3;
  const Tensor target = torch::log(row({0.2, 0.3, 0.5})) - 1;
  expect_row(l1_distance(logits, target).view({1}), {0.6});
  expect_row(l1_distance(logits, logits - 2).view({1}), {0});
  // Away from the kinks at equal probabilities.
  const Tensor own = torch::log(row({0.5, 0.28, 0.22})).requires_grad_();
  const auto loss = [&] { return l1_distance(own, target); };
  loss().backward();
  test::expect_gradient_is_difference(own, loss, test::all_entries(own), 1e-9, "logits");
}

TEST(BlockLosses, TheAcceptedLengthEndsAtTheFirstRejection) {
  expect_row(accepted_length(torch::stack({row({0.5, 0.5, 1}), row({1, 0, 1}), row({1, 1, 1})})),
             {1, 1, 3});
}

}  // namespace
}  // namespace outrider::train
