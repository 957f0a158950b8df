// SPDX-License-Identifier: Apache-2.0
// Compares gradients with central differences. In doubles the error is about h^2 times third
// derivatives plus eps / h times the loss; h is 1e-5. The caller derives the tolerance from that.
#ifndef OUTRIDER_TESTS_SUPPORT_GRADIENT_DIFFERENCES_H_
#define OUTRIDER_TESTS_SUPPORT_GRADIENT_DIFFERENCES_H_

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/near.h"

namespace outrider::test {

// Entries of a parameter that are far apart and irregularly placed in its rows.
inline std::vector<std::int64_t> scattered_entries(const torch::Tensor& parameter, int n) {
  std::vector<std::int64_t> entries;
  for (int probe = 0; probe < n; ++probe) {
    entries.push_back((probe * 7919 + 13) % parameter.numel());
  }
  return entries;
}

inline std::vector<std::int64_t> all_entries(const torch::Tensor& parameter) {
  std::vector<std::int64_t> entries;
  for (std::int64_t entry = 0; entry < parameter.numel(); ++entry) entries.push_back(entry);
  return entries;
}

// Compares the parameter's gradient, which a backward pass of `loss` has set, with differences at
// these entries.
inline void expect_gradient_is_difference(const torch::Tensor& parameter,
                                          const std::function<torch::Tensor()>& loss,
                                          const std::vector<std::int64_t>& entries,
                                          double tolerance, const std::string& name) {
  constexpr double kStep = 1e-5;
  ASSERT_EQ(parameter.scalar_type(), torch::kFloat64) << name;
  ASSERT_TRUE(parameter.grad().defined()) << name;
  torch::Tensor values = parameter.detach().view({-1});
  const torch::Tensor gradient = parameter.grad().view({-1});
  const torch::NoGradGuard no_grad;
  for (const std::int64_t entry : entries) {
    const double before = values[entry].item<double>();
    values[entry] = before + kStep;
    const double above = loss().item<double>();
    values[entry] = before - kStep;
    const double below = loss().item<double>();
    values[entry] = before;
    EXPECT_TRUE(
        test::near(gradient[entry].item<double>(), (above - below) / (2 * kStep), tolerance))
        << name << "[" << entry << "]";
  }
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_GRADIENT_DIFFERENCES_H_
