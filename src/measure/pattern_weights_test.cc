// SPDX-License-Identifier: Apache-2.0
// Cheaply generated weights are valid: every table packs and multiplies every format.
#include "measure/pattern_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "tensor/team.h"
#include "tests/support/kernel_tables.h"

namespace outrider {
namespace {

// Not a multiple of tiles, and two blocks of the longest formats.
constexpr int kColumns = 37;
constexpr int kDepth = 512;

std::vector<float> product(const Matrix& matrix, const KernelTable& table, int n_rows) {
  Activations x;
  x.resize(n_rows, kDepth, matrix.reads());
  for (int row = 0; row < n_rows; ++row) {
    for (int i = 0; i < kDepth; ++i) x.row(row)[i] = static_cast<float>((i * 7 + row) % 31) - 10;
    x.quantize_row(table, row);
  }
  std::vector<float> y(static_cast<std::size_t>(n_rows) * kColumns, std::nanf(""));
  run_team(1, [&](const Team& team) { matrix.multiply(team, x, y.data(), kColumns); });
  return y;
}

TEST(PatternWeights, AreWeightsOfEveryKind) {
  // Few rows use vectors, many use matrix units (src/kernels/amx.cc).
  for (const int n_rows : {1, 5, 9, 17}) {
    for (int kind = 0; kind < kernels::kWeightKinds; ++kind) {
      const auto weights = static_cast<WeightKind>(kind);
      const PatternWeights reader(weights, kColumns, kDepth);
      std::vector<float> first;
      for (const test::NamedTable& named : test::runnable_tables()) {
        const std::string what = kernels::name_of(weights) + (" with " + named.name);
        const Matrix matrix = Matrix::pack(reader, *named.table, 1);
        const std::vector<float> y = product(matrix, *named.table, n_rows);
        for (const float value : y) {
          ASSERT_TRUE(std::isfinite(value)) << what;
          ASSERT_NE(value, 0) << what;
        }
        // Weights that are all equal would not test a product.
        EXPECT_NE(std::count(y.begin(), y.begin() + kColumns, y.front()), kColumns) << what;
        if (weights <= WeightKind::bf16) continue;
        if (first.empty()) first = y;
        EXPECT_TRUE(test::same_bits(y, first)) << what << ", " << n_rows << " rows";
      }
    }
  }
}

}  // namespace
}  // namespace outrider
