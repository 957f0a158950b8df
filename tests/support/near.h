// SPDX-License-Identifier: Apache-2.0
// The comparison of floating-point numbers in all of the project's tests. It fails closed: every
// result other than a finite number within the tolerance of a finite number is a failure. That
// includes a NaN or an infinity on any side and a negative or non-finite tolerance. The tolerance
// is absolute and the caller derives it, usually as c * eps * sum |a| |b| (product_tolerance). A
// wrong sign counts as a distance.
#ifndef OUTRIDER_TESTS_SUPPORT_NEAR_H_
#define OUTRIDER_TESTS_SUPPORT_NEAR_H_

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace outrider::test {

inline ::testing::AssertionResult near(double actual, double expected, double tolerance) {
  // Written so that a NaN anywhere makes the condition false.
  const bool sound = std::isfinite(actual) && std::isfinite(expected) && std::isfinite(tolerance) &&
                     tolerance >= 0;
  const double distance = std::fabs(actual - expected);
  if (sound && distance <= tolerance) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << actual << " is not within " << tolerance << " of "
                                       << expected << " (distance " << distance << ")";
}

// The error that n successive roundings to float may add to a sum whose terms' magnitudes sum to
// sum_of_magnitudes. It is n * u / (1 - n * u) of that, with u = 2^-24 (Higham, "Accuracy and
// Stability of Numerical Algorithms", section 3.1), plus n smallest subnormals for products that
// underflow.
inline double product_tolerance(int n_roundings, double sum_of_magnitudes) {
  const double n_u = n_roundings * 0x1p-24;
  return n_u / (1 - n_u) * sum_of_magnitudes +
         n_roundings * static_cast<double>(std::numeric_limits<float>::denorm_min());
}

// The distance of actual from expected in units of the spacing of floats at expected.
inline double ulps_between(float actual, double expected) {
  const auto rounded = static_cast<float>(expected);
  int exponent = 0;
  std::frexp(rounded, &exponent);
  // Spacing of floats at the expected value: 24 bits, or that of subnormals.
  const double spacing = std::ldexp(1.0, exponent - 24 > -149 ? exponent - 24 : -149);
  return std::fabs(actual - expected) / spacing;
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_NEAR_H_
