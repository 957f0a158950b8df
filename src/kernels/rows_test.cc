// SPDX-License-Identifier: Apache-2.0
// The slots that work on single rows: compares every table with the scalar table bit by bit, and
// the scalar table with table.h, in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/table.h"
#include "tests/support/kernel_tables.h"
#include "tests/support/near.h"

namespace outrider::kernels {
namespace {

using test::awkward_floats;
using test::near;
using test::same_bits;

constexpr int kLengths[] = {1, 4, 12, 15, 16, 17, 31, 32, 33, 64, 172, 257};
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Quantized {
  std::vector<std::int8_t> q;
  std::vector<float> scales;
  std::vector<std::int32_t> sums;
  std::vector<float> scaled_sums;

  Quantized(const KernelTable& table, const std::vector<float>& x) {
    const auto groups = static_cast<std::size_t>(groups_of(static_cast<int>(x.size())));
    q.assign(groups * kGroup, 99);
    scales.assign(groups, -1);
    sums.assign(groups, -1);
    scaled_sums.assign(groups, -1);
    table.quantize_row(x.data(), static_cast<int>(x.size()),
                       {.values = q.data(),
                        .scales = scales.data(),
                        .sums = sums.data(),
                        .scaled_sums = scaled_sums.data(),
                        .slots = 1});
  }
};

std::vector<std::vector<float>> rows_to_quantize() {
  std::vector<std::vector<float>> rows;
  for (const int n : kLengths) {
    rows.push_back(awkward_floats(static_cast<std::size_t>(n), static_cast<unsigned>(n)));
  }
  rows.emplace_back(40, 0.0F);
  rows.emplace_back(40, -0.0F);
  rows.emplace_back(40, 1e-40F);    // subnormal: 127 / largest overflows
  rows.emplace_back(40, 3.7e-37F);  // just below 127 / largest float
  rows.emplace_back(40, 3.8e-37F);  // just above
  rows.emplace_back(40, std::numeric_limits<float>::max());
  rows.emplace_back(40, std::numeric_limits<float>::lowest());
  // The largest is 127, so halves remain halves.
  rows.push_back({127, 0.5F, 1.5F, 2.5F, 3.5F, -0.5F, -1.5F, -2.5F, 126.5F, -126.5F});
  std::vector<float> bad = awkward_floats(100, 1);
  bad[3] = kNan;
  bad[40] = kInfinity;
  bad[99] = -kInfinity;
  rows.push_back(bad);
  // Groups are rounded sixteen at a time: exactly sixteen, one more, and tainted groups beside
  // groups of zeros.
  for (const std::size_t n : {std::size_t{511}, std::size_t{512}, std::size_t{513}}) {
    std::vector<float> longer = awkward_floats(n, 7);
    rows.push_back(longer);
    std::fill_n(longer.begin() + 64, 32, -0.0F);
    longer[100] = kNan;
    longer[500] = -kInfinity;
    rows.push_back(longer);
  }
  return rows;
}

TEST(QuantizeRow, EveryTableGivesTheSameBits) {
  for (const auto& [name, table] : test::runnable_tables()) {
    for (const std::vector<float>& row : rows_to_quantize()) {
      const Quantized expected(kScalarTable, row);
      const Quantized actual(*table, row);
      EXPECT_EQ(actual.q, expected.q) << name;
      EXPECT_EQ(actual.sums, expected.sums) << name;
      for (std::size_t i = 0; i < actual.scales.size(); ++i) {
        // Infinite if sum * scale overflows, on every table.
        const float scaled = static_cast<float>(actual.sums[i]) * actual.scales[i];
        EXPECT_TRUE(std::isnan(scaled) ? std::isnan(actual.scaled_sums[i])
                                       : actual.scaled_sums[i] == scaled)
            << name;
        if (std::isnan(expected.scales[i])) {
          EXPECT_TRUE(std::isnan(actual.scales[i])) << name;
        } else {
          EXPECT_TRUE(same_bits(std::vector{actual.scales[i]}, std::vector{expected.scales[i]}))
              << name;
        }
      }
    }
  }
}

TEST(QuantizeRow, FollowsItsDefinition) {
  for (const std::vector<float>& row : rows_to_quantize()) {
    const Quantized actual(kScalarTable, row);
    for (std::size_t group = 0; group < actual.scales.size(); ++group) {
      const std::size_t begin = group * kGroup;
      const std::size_t end = std::min(begin + kGroup, row.size());
      float largest = 0;
      bool finite = true;
      for (std::size_t i = begin; i < end; ++i) {
        largest = std::max(largest, std::fabs(row[i]));
        finite = finite && std::isfinite(row[i]);
      }
      const float inverse = 127.0F / largest;
      const bool zero = !finite || !std::isfinite(inverse);
      std::int32_t sum = 0;
      for (std::size_t i = begin; i < begin + kGroup; ++i) {
        const float expected = zero || i >= end ? 0.0F : std::nearbyint(row[i] * inverse);
        EXPECT_EQ(actual.q[i], expected);
        EXPECT_LE(std::abs(actual.q[i]), 127);
        sum += actual.q[i];
      }
      EXPECT_EQ(actual.sums[group], sum);
      if (!finite) {
        EXPECT_TRUE(std::isnan(actual.scales[group]));  // NaN shows in the products
      } else {
        EXPECT_EQ(actual.scales[group], zero ? 0.0F : largest / 127.0F);
      }
    }
  }
}

TEST(QuantizeRow, RoundsExactHalvesToEven) {
  const Quantized row(kScalarTable, {127, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -2.5F, -126.5F});
  const std::vector<std::int8_t> expected{127, 0, 2, 2, 0, -2, -2, -126};
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), row.q.begin()));
}

TEST(RmsNorm, EveryTableGivesTheSameBitsAndDoubleAgrees) {
  for (const int n : kLengths) {
    const auto length = static_cast<std::size_t>(n);
    const std::vector<float> x = awkward_floats(length, static_cast<unsigned>(n));
    const std::vector<float> weight = awkward_floats(length, 7);
    std::vector<float> expected(length);
    kScalarTable.rms_norm(x.data(), weight.data(), n, 1e-5F, expected.data());
    double squares = 0;
    for (const float value : x) squares += double{value} * value;
    const double factor = 1 / std::sqrt(squares / n + double{1e-5F});
    for (std::size_t i = 0; i < length; ++i) {
      const double y = weight[i] * (x[i] * factor);
      // The sum has n / 16 + 4 additions (the root halves their error), and there are six roundings
      // around it. If x * factor is subnormal, its rounding is absolute, and the weight multiplies
      // it.
      const double tolerance =
          (n / 32.0 + 8) * 0x1p-24 * std::fabs(y) + 0x1p-149 * (1 + std::fabs(weight[i]));
      EXPECT_TRUE(near(expected[i], y, tolerance));
    }
    for (const auto& [name, table] : test::runnable_tables()) {
      std::vector<float> y(length);
      table->rms_norm(x.data(), weight.data(), n, 1e-5F, y.data());
      EXPECT_TRUE(same_bits(y, expected)) << name << " n " << n;
      std::vector<float> in_place = x;
      table->rms_norm(in_place.data(), weight.data(), n, 1e-5F, in_place.data());
      EXPECT_TRUE(same_bits(in_place, expected)) << name << " in place, n " << n;
    }
  }
}

TEST(LayerNorm, EveryTableGivesTheSameBitsAndDoubleAgrees) {
  for (const int n : kLengths) {
    for (const bool has_bias : {true, false}) {
      const auto length = static_cast<std::size_t>(n);
      // The mean is many deviations away from zero.
      std::vector<float> x;
      for (std::size_t i = 0; i < length; ++i) {
        x.push_back(3 + std::sin(static_cast<float>(7 * i + length)));
      }
      const std::vector<float> weight = awkward_floats(length, 7);
      const std::vector<float> bias = awkward_floats(length, 8);
      const float* const shift = has_bias ? bias.data() : nullptr;
      std::vector<float> expected(length);
      kScalarTable.layer_norm(x.data(), weight.data(), shift, n, 1e-5F, expected.data());
      double mean = 0;
      for (const float value : x) mean += double{value} / n;
      double variance = 0;
      for (const float value : x) variance += (value - mean) * (value - mean) / n;
      const double factor = 1 / std::sqrt(variance + double{1e-5F});
      for (std::size_t i = 0; i < length; ++i) {
        const double scaled = weight[i] * (x[i] - mean) * factor;
        const double y = scaled + (has_bias ? double{bias[i]} : 0.0);
        // n / 16 + 6 roundings of sums of numbers up to 4, in the mean; the deviation's relative
        // error of as many half units, and some roundings around it.
        const double of_mean = (n / 16.0 + 6) * 4 * 0x1p-24 * std::fabs(weight[i]) * factor;
        const double tolerance = of_mean * (1 + 4 * factor) +
                                 (n / 16.0 + 10) * 0x1p-24 * (std::fabs(scaled) + std::fabs(y)) +
                                 0x1p-148;
        EXPECT_TRUE(near(expected[i], y, tolerance)) << n << " " << i;
      }
      for (const auto& [name, table] : test::runnable_tables()) {
        std::vector<float> y(length);
        table->layer_norm(x.data(), weight.data(), shift, n, 1e-5F, y.data());
        EXPECT_TRUE(same_bits(y, expected)) << name << " n " << n;
        std::vector<float> in_place = x;
        table->layer_norm(in_place.data(), weight.data(), shift, n, 1e-5F, in_place.data());
        EXPECT_TRUE(same_bits(in_place, expected)) << name << " in place, n " << n;
      }
    }
    const std::vector<float> x = awkward_floats(static_cast<std::size_t>(n), 3);
    std::vector<float> expected(x.size());
    kScalarTable.layer_norm(x.data(), x.data(), x.data(), n, 1e-5F, expected.data());
    for (const auto& [name, table] : test::runnable_tables()) {
      std::vector<float> y(x.size());
      table->layer_norm(x.data(), x.data(), x.data(), n, 1e-5F, y.data());
      EXPECT_TRUE(same_bits(y, expected)) << name << " awkward, n " << n;
    }
  }
}

// Rows of one repeated number have no deviation: the result is the bias.
TEST(LayerNorm, OfARowOfOneNumberIsTheBias) {
  const std::vector<float> x(33, 0.1F);
  const std::vector<float> bias(33, 2.5F);
  std::vector<float> y(33);
  kScalarTable.layer_norm(x.data(), x.data(), bias.data(), 33, 1e-5F, y.data());
  for (const float value : y) EXPECT_NEAR(value, 2.5F, 1e-5F);
}

TEST(ApplyRope, EveryTableGivesTheSameBitsAndDoubleAgrees) {
  for (const int half : kLengths) {
    const auto length = static_cast<std::size_t>(half);
    const std::vector<float> x = awkward_floats(2 * length + 5, static_cast<unsigned>(half));
    std::vector<float> cosines;
    std::vector<float> sines;
    for (int i = 0; i < half; ++i) {
      cosines.push_back(static_cast<float>(std::cos(i * 0.7)));
      sines.push_back(static_cast<float>(std::sin(i * 0.7)));
    }
    std::vector<float> expected = x;
    kScalarTable.apply_rope(expected.data(), cosines.data(), sines.data(), half);
    for (std::size_t i = 0; i < length; ++i) {
      const double a = x[i];
      const double b = x[i + length];
      const double tolerance = test::product_tolerance(2, std::fabs(a) + std::fabs(b));
      EXPECT_TRUE(near(expected[i], a * cosines[i] - b * sines[i], tolerance));
      EXPECT_TRUE(near(expected[i + length], b * cosines[i] + a * sines[i], tolerance));
    }
    EXPECT_TRUE(std::equal(x.begin() + 2 * half, x.end(), expected.begin() + 2 * half));
    for (const auto& [name, table] : test::runnable_tables()) {
      std::vector<float> y = x;
      table->apply_rope(y.data(), cosines.data(), sines.data(), half);
      EXPECT_TRUE(same_bits(y, expected)) << name << " half " << half;
    }
  }
}

TEST(SiluMultiply, EveryTableGivesTheSameBitsAndDoubleAgrees) {
  for (const int n : kLengths) {
    const auto length = static_cast<std::size_t>(n);
    std::vector<float> gate = awkward_floats(length, static_cast<unsigned>(n));
    if (n > 16) {
      gate[1] = -90.0F;  // e^90 overflows: the result is -0
      gate[2] = -88.0F;
      gate[3] = 1000.0F;
    }
    const std::vector<float> up = awkward_floats(length, 9);
    std::vector<float> expected(length);
    kScalarTable.silu_multiply(gate.data(), up.data(), n, expected.data());
    for (std::size_t i = 0; i < length; ++i) {
      // e^-gate within 1 ulp, and four more roundings, each at most 2^-23 relative. Below -88 the
      // denominator overflows: the true value is then below 128 e^-88 of `up`.
      const double y = gate[i] / (1 + std::exp(-double{gate[i]})) * up[i];
      const double lost = gate[i] < -88 ? 128 * std::exp(-88.0) * std::fabs(up[i]) : 0;
      EXPECT_TRUE(near(expected[i], y, 5 * 0x1p-23 * std::fabs(y) + lost + 0x1p-148));
    }
    for (const auto& [name, table] : test::runnable_tables()) {
      std::vector<float> y = gate;
      table->silu_multiply(y.data(), up.data(), n, y.data());  // in place
      EXPECT_TRUE(same_bits(y, expected)) << name << " n " << n;
    }
  }
}

// A long sweep of the exponential within silu, so that its equality across tables is tested for
// more than a few hundred values.
TEST(SiluMultiply, SweepGivesTheSameBits) {
  std::vector<float> gate;
  for (int i = -120000; i <= 120000; ++i) gate.push_back(static_cast<float>(i) * 0x1p-10F);
  const std::vector<float> up(gate.size(), 1.0F);
  const int n = static_cast<int>(gate.size());
  std::vector<float> expected(gate.size());
  kScalarTable.silu_multiply(gate.data(), up.data(), n, expected.data());
  for (const auto& [name, table] : test::runnable_tables()) {
    std::vector<float> y(gate.size());
    table->silu_multiply(gate.data(), up.data(), n, y.data());
    EXPECT_TRUE(same_bits(y, expected)) << name;
  }
}

// Within both limits, at them and beyond; NaN is passed on.
TEST(ClampedSwishMultiply, EveryTableGivesTheSameBitsAndDoubleAgrees) {
  constexpr float kLimit = 7;
  std::vector<float> gate;
  std::vector<float> up;
  for (int i = -60000; i <= 60000; ++i) {
    gate.push_back(static_cast<float>(i) * 0x1p-12F);
    up.push_back(static_cast<float>((i * 37) % 40000) * 0x1p-11F);
  }
  for (const float extreme : {1e20F, -1e20F, 0.0F, -0.0F, 7.0F, -7.0F, 1e-30F, -60.0F}) {
    gate.insert(gate.end(), {extreme, 1.5F});
    up.insert(up.end(), {0.5F, extreme});
  }
  const int n = static_cast<int>(gate.size());
  std::vector<float> expected(gate.size());
  kScalarTable.clamped_swish_multiply(gate.data(), up.data(), n, kLimit, expected.data());
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const double g = std::min(gate[i], kLimit);
    const double u = std::clamp(up[i], -kLimit, kLimit);
    const double y = g / (1 + std::exp(-1.702 * g)) * (u + 1);
    // The exponent's argument errs by two roundings, multiplied by its size; five more follow, and
    // that of u + 1, which may cancel. If e^(-1.702 g) overflows, the true value is below 128 e^-88
    // of the factors.
    const double relative = (6 + 2 * std::min(std::fabs(1.702 * g), 100.0)) * 0x1p-23;
    const double lost =
        std::fabs(g) * (1e-30 + 128 * std::exp(-88.0)) * std::fabs(u + 1) + 0x1p-24 * std::fabs(g);
    EXPECT_TRUE(near(expected[i], y, relative * std::fabs(y) + lost)) << g << " " << u;
  }
  for (const auto& [name, table] : test::runnable_tables()) {
    std::vector<float> y = gate;
    table->clamped_swish_multiply(y.data(), up.data(), n, kLimit, y.data());  // in place
    EXPECT_TRUE(same_bits(y, expected)) << name;
    const std::vector<float> none = {std::numeric_limits<float>::quiet_NaN(), 1.0F};
    const std::vector<float> other = {1.0F, std::numeric_limits<float>::quiet_NaN()};
    std::vector<float> shown(2);
    table->clamped_swish_multiply(none.data(), other.data(), 2, kLimit, shown.data());
    EXPECT_TRUE(std::isnan(shown[0]) && std::isnan(shown[1])) << name;
  }
}

// e^x is accurate to a unit in the last place; quotient and product round once each.
TEST(SigmoidMultiply, EveryTableGivesTheSameBitsAndDoubleAgrees) {
  for (const int n : kLengths) {
    const auto size = static_cast<std::size_t>(n);
    std::vector<float> gate = awkward_floats(size, 3);
    const std::vector<float> up = awkward_floats(size, 4);
    std::vector<float> expected(size);
    kScalarTable.sigmoid_multiply(gate.data(), up.data(), n, expected.data());
    for (const auto& [name, table] : test::runnable_tables()) {
      std::vector<float> out = up;
      table->sigmoid_multiply(gate.data(), out.data(), n, out.data());
      EXPECT_TRUE(same_bits(out, expected)) << name << " n " << n;
    }
    for (std::size_t i = 0; i < size; ++i) {
      const double exact = up[i] / (1 + std::exp(-double{gate[i]}));
      EXPECT_NEAR(expected[i], exact, 4e-7 * std::fabs(exact) + 1e-37) << gate[i];
    }
  }
}

TEST(GeluMultiply, EveryTableGivesTheSameBitsAndDoubleAgrees) {
  std::vector<float> gate;
  for (int i = -60000; i <= 60000; ++i) gate.push_back(static_cast<float>(i) * 0x1p-12F);
  for (const float extreme : {1e20F, -1e20F, 0.0F, -0.0F, 1e-30F, -11.0F}) gate.push_back(extreme);
  const std::vector<float> up(gate.size(), 0.75F);
  const int n = static_cast<int>(gate.size());
  std::vector<float> expected(gate.size());
  kScalarTable.gelu_multiply(gate.data(), up.data(), n, expected.data());
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const double x = gate[i];
    const double inner = std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
    const double y = x * 0.5 * (1 + std::tanh(inner)) * up[i];
    // Four roundings of the exponent's argument, multiplied by its size, and five more. tanh itself
    // cancels near -1 by 2^-53 of 1; below e^-88 the denominator overflows.
    const double relative = (5 + 4 * std::min(std::fabs(2 * inner), 100.0)) * 0x1p-23;
    const double lost = std::fabs(x) * (0x1p-52 + 128 * std::exp(-88.0));
    EXPECT_TRUE(near(expected[i], y, relative * std::fabs(y) + lost)) << x;
  }
  for (const auto& [name, table] : test::runnable_tables()) {
    std::vector<float> y = gate;
    table->gelu_multiply(y.data(), up.data(), n, y.data());  // in place
    EXPECT_TRUE(same_bits(y, expected)) << name;
  }
}

TEST(GeluErfMultiply, EveryTableGivesTheSameBitsAndDoubleAgrees) {
  std::vector<float> gate;
  for (int i = -65000; i <= 65000; ++i) gate.push_back(static_cast<float>(i) * 0x1p-12F);
  for (const float extreme :
       {1e20F, -1e20F, 0.0F, -0.0F, 1e-30F, -1e-30F, -14.4F, -13.3F, 14.9F, 15.1F, kInfinity}) {
    gate.push_back(extreme);
  }
  const std::vector<float> up(gate.size(), 0.75F);
  const int n = static_cast<int>(gate.size());
  std::vector<float> expected(gate.size());
  kScalarTable.gelu_erf_multiply(gate.data(), up.data(), n, expected.data());
  double worst = 0;
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const double x = gate[i];
    const double y = 0.5 * x * std::erfc(-x * std::sqrt(0.5)) * up[i];
    if (std::isinf(x)) {
      EXPECT_EQ(expected[i], kInfinity);
      continue;
    }
    // Twelve roundings. If the tail is subnormal it errs by a little more than half a unit in the
    // last place, multiplied by |x|; the result has such a rounding as well.
    const double subnormal = (std::min(std::fabs(x), 15.0) + 2) * 0x1p-149;
    EXPECT_TRUE(near(expected[i], y, 12 * 0x1p-24 * std::fabs(y) + subnormal)) << x;
    if (std::fabs(y) > 0x1p-120) worst = std::max(worst, std::fabs(expected[i] / y - 1));
  }
  RecordProperty("worst_2^-24", std::to_string(worst * 0x1p24));
  for (const auto& [name, table] : test::runnable_tables()) {
    std::vector<float> y = gate;
    table->gelu_erf_multiply(y.data(), up.data(), n, y.data());  // in place
    EXPECT_TRUE(same_bits(y, expected)) << name;
    std::vector<float> nan = {kNan, 1.0F};
    table->gelu_erf_multiply(nan.data(), up.data(), 2, nan.data());
    EXPECT_TRUE(std::isnan(nan[0]) && nan[1] > 0) << name;
  }
}

TEST(SoftCap, EveryTableGivesTheSameBitsAndDoubleAgrees) {
  std::vector<float> x;
  for (int i = -60000; i <= 60000; ++i) x.push_back(static_cast<float>(i) * 0x1p-9F);
  for (const float more : {1e-45F, -1e-40F, 1e-30F, -0.0F, 1e30F, -3e38F}) x.push_back(more);
  const int n = static_cast<int>(x.size());
  for (const float cap : {1e-3F, 0.75F, 30.0F, 50.0F, 1e6F}) {
    std::vector<float> expected = x;
    kScalarTable.soft_cap(expected.data(), n, cap);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double y = cap * std::tanh(double{x[i]} / cap);
      // Three roundings around tanh, which damps those before it; that is within 3 ulp. If x / cap
      // is subnormal, its rounding is absolute.
      EXPECT_TRUE(near(expected[i], y, 9 * 0x1p-24 * std::fabs(y) + 0x1p-148 * (1 + double{cap})))
          << x[i] << " cap " << cap;
      EXPECT_LE(std::fabs(expected[i]), cap);
    }
    for (const auto& [name, table] : test::runnable_tables()) {
      std::vector<float> y = x;
      table->soft_cap(y.data(), n, cap);
      EXPECT_TRUE(same_bits(y, expected)) << name << " cap " << cap;
    }
  }
}

TEST(SoftCap, BendsAnyNumberOfElementsAndNoMore) {
  for (const auto& [name, table] : test::runnable_tables()) {
    for (const int n : kLengths) {
      std::vector<float> x(static_cast<std::size_t>(n) + 3, 1e6F);
      table->soft_cap(x.data(), n, 30.0F);
      for (std::size_t i = 0; i < x.size(); ++i) {
        EXPECT_EQ(x[i], i < static_cast<std::size_t>(n) ? 30.0F : 1e6F) << name;
      }
    }
    std::vector<float> ends = {kInfinity, -kInfinity, kNan, 0.0F};
    table->soft_cap(ends.data(), 4, 30.0F);
    EXPECT_EQ(ends[0], 30.0F) << name;
    EXPECT_EQ(ends[1], -30.0F) << name;
    EXPECT_TRUE(std::isnan(ends[2])) << name;
    EXPECT_EQ(ends[3], 0.0F) << name;
  }
}

TEST(Add, EveryTableAddsElementwise) {
  for (const int n : kLengths) {
    const std::vector<float> x = awkward_floats(static_cast<std::size_t>(n) + 3, 1);
    const std::vector<float> y = awkward_floats(static_cast<std::size_t>(n) + 3, 2);
    std::vector<float> expected = x;
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) expected[i] += y[i];
    for (const auto& [name, table] : test::runnable_tables()) {
      std::vector<float> sum = x;
      table->add(sum.data(), y.data(), n);
      EXPECT_TRUE(same_bits(sum, expected)) << name << " n " << n;
    }
  }
}

}  // namespace
}  // namespace outrider::kernels
