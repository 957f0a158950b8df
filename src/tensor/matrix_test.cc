// SPDX-License-Identifier: Apache-2.0
#include "tensor/matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "base/float16.h"
#include "kernels/dispatch.h"
#include "outrider/error.h"
#include "tests/support/kernel_tables.h"
#include "tests/support/models/float_weight_reader.h"
#include "tests/support/near.h"

namespace outrider {
namespace {

using test::FloatWeightReader;
using test::near;
using test::product_tolerance;

constexpr WeightKind kKinds[] = {WeightKind::f32, WeightKind::bf16, WeightKind::int8,
                                 WeightKind::int4};

std::vector<float> random_floats(std::size_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(generator);
  return values;
}

bool is_quantized(WeightKind kind) { return kind == WeightKind::int8 || kind == WeightKind::int4; }

std::vector<float> multiply(const Matrix& matrix, const KernelTable& table,
                            const std::vector<float>& x, int n_rows, int n_threads) {
  Activations inputs;
  inputs.resize(n_rows, matrix.k(), ActivationForms::of(matrix.kind(), table));
  std::vector<float> y(static_cast<std::size_t>(n_rows) * matrix.n_columns(), -1.0F);
  run_team(n_threads, [&](const Team& team) {
    const Range rows = team.share(n_rows);
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      std::memcpy(inputs.row(static_cast<int>(row)), x.data() + row * matrix.k(),
                  static_cast<std::size_t>(matrix.k()) * sizeof(float));
      inputs.quantize_row(table, static_cast<int>(row));
    }
    team.barrier();
    matrix.multiply(team, inputs, y.data(), static_cast<std::size_t>(matrix.n_columns()));
  });
  return y;
}

// The weight that the rows represent, in double.
double weight_at(const WeightRows& rows, WeightKind kind, std::int64_t row, int i, int k) {
  const auto at = static_cast<std::size_t>(row * k + i);
  const auto group = static_cast<std::size_t>(row * kernels::groups_of(k) + i / kernels::kGroup);
  const auto f16 = [](std::uint16_t bits) { return to_float(F16{bits}); };
  switch (kind) {
    case WeightKind::f32:
      return rows.f32[at];
    case WeightKind::bf16:
      return to_float(Bf16{rows.bf16[at]});
    case WeightKind::int8:
      return double{f16(rows.scales[group])} * rows.int8[at];
    case WeightKind::int4:
      return double{f16(rows.scales[group])} * rows.int4[at] + f16(rows.minimums[group]);
    default:
      return NAN;
  }
  return NAN;
}

// Compares the whole computation (quantising inputs and weights included) with the double product
// of the unrounded inputs and the stored weights. The tolerance is that of rounding x to int8: half
// a step, largest / 254, per element.
TEST(Matrix, MultipliesWithinRounding) {
  constexpr int kRows = 5;
  constexpr int kColumns = 37;
  constexpr int kDepth = 172;
  const std::vector<float> w = random_floats(std::size_t{kColumns} * kDepth, 1);
  const std::vector<float> x = random_floats(std::size_t{kRows} * kDepth, 2);
  const KernelTable& table = kernels::best_table();
  for (const WeightKind kind : kKinds) {
    const Matrix matrix = Matrix::pack(FloatWeightReader(w, kDepth, kind), table, 2);
    EXPECT_EQ(matrix.n_columns(), kColumns);
    EXPECT_EQ(matrix.k(), kDepth);
    const std::vector<float> y = multiply(matrix, table, x, kRows, 2);
    WeightRows rows;
    quantize_weights(w, kColumns, kDepth, kind, rows);
    for (int row = 0; row < kRows; ++row) {
      for (int column = 0; column < kColumns; ++column) {
        double expected = 0;
        double magnitudes = 0;
        double input_rounding = 0;
        for (int i = 0; i < kDepth; ++i) {
          const double weight = weight_at(rows, kind, column, i, kDepth);
          const float* inputs = x.data() + row * kDepth;
          expected += weight * inputs[i];
          magnitudes += std::fabs(weight * inputs[i]);
          if (ActivationForms::of(kind, table).bf16) {
            input_rounding += std::fabs(weight * inputs[i]) * 0x1p-9;
          }
          if (is_quantized(kind)) {
            const int group = i / kernels::kGroup * kernels::kGroup;
            float largest = 0;
            for (int j = group; j < std::min(group + kernels::kGroup, kDepth); ++j) {
              largest = std::max(largest, std::fabs(inputs[j]));
            }
            input_rounding += std::fabs(weight) * largest / 254 * (1 + 1e-5);
          }
        }
        // int4 sums terms with a minimum of either sign. Their magnitudes are bounded by the
        // weight's range of 16 steps; a factor of 32 covers that.
        const double tolerance = product_tolerance(kDepth + 3, 32 * magnitudes) + input_rounding;
        EXPECT_TRUE(near(y[static_cast<std::size_t>(row * kColumns + column)], expected, tolerance))
            << "kind " << static_cast<int>(kind) << " row " << row << " column " << column;
      }
    }
  }
}

TEST(Matrix, GivesTheSameBitsForAnyNumberOfThreadsAndRows) {
  constexpr int kRows = 9;
  constexpr int kColumns = 100;
  constexpr int kDepth = 64;
  const std::vector<float> w = random_floats(std::size_t{kColumns} * kDepth, 3);
  const std::vector<float> x = random_floats(std::size_t{kRows} * kDepth, 4);
  const KernelTable& table = kernels::best_table();
  for (const WeightKind kind : kKinds) {
    const FloatWeightReader reader(w, kDepth, kind);
    const std::vector<float> expected =
        multiply(Matrix::pack(reader, table, 1), table, x, kRows, 1);
    for (const int n_threads : {2, 3, 16}) {  // 16: more threads than tiles
      const Matrix matrix = Matrix::pack(reader, table, n_threads);
      EXPECT_EQ(multiply(matrix, table, x, kRows, n_threads), expected);
      for (int row = 0; row < kRows; ++row) {
        const std::vector<float> one(x.begin() + row * kDepth, x.begin() + (row + 1) * kDepth);
        const std::vector<float> part(expected.begin() + row * kColumns,
                                      expected.begin() + (row + 1) * kColumns);
        EXPECT_EQ(multiply(matrix, table, one, 1, n_threads), part);
      }
    }
  }
}

// Products that begin at any row, each with its own matrix, have the bits of whole ones.
TEST(Matrix, MultipliesPartsOfTheRowsByMatricesOfTheirOwn) {
  constexpr int kColumns = 150;  // ten tiles, the last one ragged: three groups
  constexpr int kDepth = 75;
  constexpr Range kRanges[] = {{0, 1}, {1, 8}, {8, 9}, {9, 26}, {26, 59}, {59, 60}};
  constexpr int kRows = 60;
  const std::vector<float> x = random_floats(std::size_t{kRows} * kDepth, 31);
  for (const auto& [name, table] : test::runnable_tables()) {
    for (const WeightKind kind : kKinds) {
      SCOPED_TRACE(name + " " + kernels::name_of(kind));
      std::vector<Matrix> matrices;
      std::vector<std::vector<float>> whole;
      for (unsigned i = 0; i < std::size(kRanges); ++i) {
        const FloatWeightReader reader(random_floats(std::size_t{kColumns} * kDepth, i), kDepth,
                                       kind);
        matrices.push_back(Matrix::pack(reader, *table, 1));
        whole.push_back(multiply(matrices.back(), *table, x, kRows, 1));
      }
      for (const int n_threads : {1, 2}) {
        Activations inputs;
        inputs.resize(kRows, kDepth, ActivationForms::of(kind, *table),
                      Activations::Reads::any_rows);
        for (int row = 0; row < kRows; ++row) {
          std::copy_n(x.data() + row * kDepth, kDepth, inputs.row(row));
          inputs.quantize_row(*table, row);
        }
        std::vector<float> y(std::size_t{kRows} * kColumns, -1.0F);
        run_team(n_threads, [&](const Team& team) {
          multiply_each(team, std::size(kRanges), [&](std::size_t i) {
            return PartialProduct{.matrix = &matrices[i],
                                  .x = &inputs,
                                  .rows = kRanges[i],
                                  .y = y.data() + kRanges[i].begin * kColumns,
                                  .y_stride = kColumns};
          });
        });
        for (std::size_t i = 0; i < std::size(kRanges); ++i) {
          for (std::int64_t row = kRanges[i].begin; row < kRanges[i].end; ++row) {
            const std::int64_t at = row * kColumns;
            EXPECT_EQ(std::memcmp(y.data() + at, whole[i].data() + at, kColumns * sizeof(float)), 0)
                << "row " << row;
          }
        }
      }
    }
  }
}

TEST(Matrix, PacksBigOnesToo) {  // the code path with huge pages: more than 8 MB
  constexpr int kDepth = 1024;
  constexpr int kColumns = 2100;
  const std::vector<float> w = random_floats(std::size_t{kColumns} * kDepth, 5);
  const std::vector<float> x = random_floats(kDepth, 6);
  const KernelTable& table = kernels::best_table();
  const Matrix matrix = Matrix::pack(FloatWeightReader(w, kDepth, WeightKind::f32), table, 2);
  EXPECT_GT(matrix.packed_bytes(), std::size_t{8} << 20);
  const std::vector<float> y = multiply(matrix, table, x, 1, 2);
  for (const int column : {0, 17, kColumns - 1}) {
    float expected = 0;
    for (int i = 0; i < kDepth; ++i) {
      expected = std::fma(x[static_cast<std::size_t>(i)],
                          w[static_cast<std::size_t>(column * kDepth + i)], expected);
    }
    EXPECT_EQ(y[static_cast<std::size_t>(column)], expected);
  }
}

TEST(Matrix, RefusesEmptyShapesAndPassesTheReadersErrorsOn) {
  class Broken : public WeightReader {
   public:
    explicit Broken(std::int64_t n_rows) : n_rows_(n_rows) {}
    WeightKind kind() const override { return WeightKind::f32; }
    std::int64_t n_rows() const override { return n_rows_; }
    std::int64_t k() const override { return 8; }
    void read(std::int64_t, std::int64_t, WeightRows&) const override {
      throw Error("read", "broken", "weights", "none");
    }

   private:
    std::int64_t n_rows_;
  };
  const KernelTable& table = kernels::best_table();
  EXPECT_THROW(Matrix::pack(Broken(0), table, 1), Error);
  EXPECT_THROW(Matrix::pack(Broken(std::int64_t{1} << 40), table, 1), Error);
  try {
    Matrix::pack(Broken(40), table, 2);
    FAIL() << "expected the reader's error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("broken"), std::string::npos);
  }
}

TEST(QuantizeWeights, RoundsEachGroupAsDocumented) {
  // One row, two groups: a full one and one of three elements.
  std::vector<float> values(35, 0.0F);
  values[0] = 12.7F;  // scale 0.1 rounded to f16
  values[1] = -12.7F;
  values[2] = 0.26F;
  values[32] = 1.0F;
  values[33] = -0.5F;
  values[34] = 0.25F;
  WeightRows rows;
  quantize_weights(values, 1, 35, WeightKind::int8, rows);
  ASSERT_EQ(rows.int8.size(), 35U);
  ASSERT_EQ(rows.scales.size(), 2U);
  EXPECT_TRUE(rows.f32.empty() && rows.bf16.empty() && rows.int4.empty() && rows.minimums.empty());
  EXPECT_EQ(rows.scales[0], to_f16(12.7F / 127).bits);
  EXPECT_EQ(rows.int8[0], 127);
  EXPECT_EQ(rows.int8[1], -127);
  EXPECT_EQ(rows.int8[2], 3);
  EXPECT_EQ(rows.int8[3], 0);
  EXPECT_EQ(rows.int8[32], 127);

  std::vector<float> tainted = values;
  tainted[33] = std::nanf("");
  for (const WeightKind kind : {WeightKind::int8, WeightKind::int4}) {
    WeightRows shown;
    quantize_weights(tainted, 1, 35, kind, shown);
    EXPECT_FALSE(std::isnan(to_float(F16{shown.scales[0]})));
    EXPECT_TRUE(std::isnan(to_float(F16{shown.scales[1]})));
  }

  quantize_weights(values, 1, 35, WeightKind::int4, rows);
  ASSERT_EQ(rows.int4.size(), 35U);
  ASSERT_EQ(rows.minimums.size(), 2U);
  EXPECT_EQ(rows.minimums[1], to_f16(-0.5F).bits);
  EXPECT_EQ(rows.scales[1], to_f16(0.1F).bits);
  EXPECT_EQ(rows.int4[32], 15);
  EXPECT_EQ(rows.int4[33], 0);
  EXPECT_EQ(rows.int4[34], 8);  // 7.5 except for the rounding of the scale: f16(0.1) is below 0.1
}

TEST(QuantizeWeights, ZeroScaleGivesZeros) {
  const std::vector<float> tiny(32, 1e-12F);  // f16(1e-12 / 127) is 0
  WeightRows rows;
  quantize_weights(tiny, 1, 32, WeightKind::int8, rows);
  EXPECT_EQ(rows.scales[0], 0);
  for (const std::int8_t q : rows.int8) EXPECT_EQ(q, 0);
  const std::vector<float> constant(32, 2.5F);
  quantize_weights(constant, 1, 32, WeightKind::int4, rows);
  EXPECT_EQ(rows.scales[0], 0);
  EXPECT_EQ(rows.minimums[0], to_f16(2.5F).bits);
  for (const std::uint8_t q : rows.int4) EXPECT_EQ(q, 0);
}

TEST(Activations, PartsOfARowMakeTheWhole) {
  constexpr int kRows = 3;
  constexpr int kColumns = 20;
  constexpr int kDepth = 172;                       // its last group is shorter
  constexpr int kBorders[] = {0, 32, 128, kDepth};  // first columns of the parts
  const std::vector<float> w = random_floats(std::size_t{kColumns} * kDepth, 1);
  const std::vector<float> x = random_floats(std::size_t{kRows} * kDepth, 2);
  const KernelTable& table = kernels::best_table();
  for (const WeightKind kind : kKinds) {
    const Matrix matrix = Matrix::pack(FloatWeightReader(w, kDepth, kind), table, 1);
    Activations inputs;
    inputs.resize(kRows, kDepth, ActivationForms::of(kind, table));
    for (int row = 0; row < kRows; ++row) {
      std::copy_n(x.data() + row * kDepth, kDepth, inputs.row(row));
      for (int part = 2; part >= 0; --part) {
        const int first = kBorders[part];
        inputs.quantize_part(table, row, first, kBorders[part + 1] - first);
      }
    }
    std::vector<float> y(std::size_t{kRows} * kColumns, -1.0F);
    run_team(1, [&](const Team& team) { matrix.multiply(team, inputs, y.data(), kColumns); });
    EXPECT_EQ(y, multiply(matrix, table, x, kRows, 1));
  }
}

// Activations may hold rows of different depths in turn, without stale quantised tails.
TEST(Activations, CanBeReusedForOtherShapes) {
  const KernelTable& table = kernels::best_table();
  const std::vector<float> w = random_floats(16 * 33, 7);
  const std::vector<float> x = random_floats(2 * 33, 8);
  const Matrix matrix = Matrix::pack(FloatWeightReader(w, 33, WeightKind::int8), table, 1);
  const auto product = [&](Activations& inputs) {
    inputs.resize(2, 33, {.int8 = true});
    for (int row = 0; row < 2; ++row) {
      std::memcpy(inputs.row(row), x.data() + row * 33, 33 * sizeof(float));
      inputs.quantize_row(table, row);
    }
    std::vector<float> y(2 * 16);
    run_team(1, [&](const Team& team) { matrix.multiply(team, inputs, y.data(), 16); });
    return y;
  };
  Activations fresh;
  Activations used;
  used.resize(3, 64, {.int8 = true});
  for (int row = 0; row < 3; ++row) {
    std::fill_n(used.row(row), 64, 100.0F);
    used.quantize_row(table, row);
  }
  EXPECT_EQ(product(used), product(fresh));
}

}  // namespace
}  // namespace outrider
