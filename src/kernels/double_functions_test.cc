// SPDX-License-Identifier: Apache-2.0
// Compares the double functions of every table with the scalar ones, which define their bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/elementary.h"
#include "kernels/dispatch.h"

namespace outrider::kernels {
namespace {

// Every length around multiples of the vectors' length.
void expect_bits(const std::vector<double>& x, double (*expected)(double),
                 void (*KernelTable::*slot)(double*, int)) {
  for (const KernelTable* table : compiled_tables()) {
    if (!is_supported(*table)) continue;
    for (std::size_t n = 1, first = 0; first < x.size(); first += n, n = n % 19 + 1) {
      n = std::min(n, x.size() - first);
      std::vector<double> got(x.begin() + static_cast<std::ptrdiff_t>(first),
                              x.begin() + static_cast<std::ptrdiff_t>(first + n));
      got.push_back(7);  // must not be written
      (table->*slot)(got.data(), static_cast<int>(n));
      ASSERT_EQ(got[n], 7) << table->name;
      for (std::size_t i = 0; i < n; ++i) {
        const double want = expected(x[first + i]);
        if (std::isnan(want) && std::isnan(got[i])) continue;
        ASSERT_EQ(std::memcmp(&got[i], &want, sizeof want), 0)
            << table->name << ", " << n << " together: of " << x[first + i] << " " << got[i]
            << ", expected " << want;
      }
    }
  }
}

// As in table.h; NaN has no weight.
double expected_weight(double x) {
  const double weight = portable_exp(x);
  return weight > 0 ? weight : 0;
}
int expected_bucket(double x, double per_unit, int last) {
  return -x * per_unit < last ? static_cast<int>(-x * per_unit) : last;
}

TEST(DoubleFunctions, SoftmaxWeightsArePortableExp) {
  constexpr double kPerUnit = 64;
  constexpr int kLast = 4095;
  constexpr float kLargest = 3.5F;
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> logits = {kLargest, 3.4999998F, 0.0F,   -0.0F,     -700.0F,
                               -742.0F,  -743.0F,    -1e30F, -infinity, std::nanf("")};
  std::mt19937_64 engine(1);
  for (int i = 0; i < 200'000; ++i) {
    const double u = static_cast<double>(engine() >> 11) * 0x1p-53;
    logits.push_back(static_cast<float>(kLargest - 800 * u * u * u));
  }
  for (const KernelTable* table : compiled_tables()) {
    if (!is_supported(*table)) continue;
    for (const double temperature : {1.0, 0.8, 1e-3}) {
      for (const bool with_buckets : {true, false}) {
        // Every length around multiples of the vectors' length.
        for (std::size_t n = 1, first = 0; first < logits.size(); first += n, n = n % 19 + 1) {
          n = std::min(n, logits.size() - first);
          std::vector<double> weights(n + 1, 7);  // the last one must not be written
          std::vector<std::uint16_t> buckets(n + 1, 7);
          const int n_weightless =
              table->softmax_weights({.logits = &logits[first],
                                      .n = static_cast<int>(n),
                                      .largest = kLargest,
                                      .temperature = temperature,
                                      .weights = weights.data(),
                                      .buckets = with_buckets ? buckets.data() : nullptr,
                                      .buckets_per_unit = kPerUnit,
                                      .last_bucket = kLast});
          int expected_weightless = 0;
          for (std::size_t i = 0; i < n; ++i) {
            const double x = (double{logits[first + i]} - double{kLargest}) / temperature;
            const double weight = expected_weight(x);
            ASSERT_EQ(std::memcmp(&weights[i], &weight, sizeof weight), 0)
                << table->name << ", " << n << " together: of " << x << " " << weights[i]
                << ", expected " << weight;
            const int bucket = with_buckets ? expected_bucket(x, kPerUnit, kLast) : 7;
            ASSERT_EQ(buckets[i], bucket) << table->name << " " << x;
            expected_weightless += weight > 0 ? 0 : 1;
          }
          ASSERT_EQ(n_weightless, expected_weightless) << table->name;
          ASSERT_EQ(weights[n], 7) << table->name;
          ASSERT_EQ(buckets[n], 7) << table->name;
        }
      }
    }
  }
}

TEST(DoubleFunctions, LogarithmsArePortableLog) {
  std::vector<double> x = {1.0,
                           0.5,
                           2.0,
                           std::sqrt(0.5),
                           std::sqrt(2.0),
                           std::nextafter(1.0, 0.0),
                           std::nextafter(1.0, 2.0),
                           std::numeric_limits<double>::min(),
                           std::numeric_limits<double>::max()};
  std::mt19937_64 engine(2);
  for (int i = 0; i < 200'000; ++i) {
    const double u = static_cast<double>((engine() >> 11) + 1) * 0x1p-53;
    x.push_back(i % 4 == 0 ? std::ldexp(u, static_cast<int>(engine() % 1900) - 900) : u);
  }
  expect_bits(x, portable_log, &KernelTable::logarithms);
}

}  // namespace
}  // namespace outrider::kernels
