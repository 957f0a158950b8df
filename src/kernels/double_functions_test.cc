// The double functions of every table against the scalar ones that say what their bits are.
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

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Every length around the vectors' own: whole ones and what is left over.
void expect_bits(const std::vector<double>& x, double (*expected)(double),
                 void (*KernelTable::*slot)(double*, int)) {
  for (const KernelTable* table : compiled_tables()) {
    if (!is_supported(*table)) continue;
    for (std::size_t n = 1, first = 0; first < x.size(); first += n, n = n % 19 + 1) {
      n = std::min(n, x.size() - first);
      std::vector<double> got(x.begin() + static_cast<std::ptrdiff_t>(first),
                              x.begin() + static_cast<std::ptrdiff_t>(first + n));
      got.push_back(7);  // nobody's
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

TEST(DoubleFunctions, ExponentialsArePortableExp) {
  std::vector<double> x = {0.0,    -0.0,   1.0,    -1.0,  709.78, 709.79,    -745.1,     -745.2,
                           -708.4, -708.3, 1e-300, 1e300, -1e300, kInfinity, -kInfinity, NAN};
  std::mt19937_64 engine(1);
  for (int i = 0; i < 200'000; ++i) {
    const double u = static_cast<double>(engine() >> 11) * 0x1p-53;
    x.push_back(-1500 * u * u * u + 710 * (i % 8 == 0 ? u : 0));
  }
  expect_bits(x, portable_exp, &KernelTable::exponentials);
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
