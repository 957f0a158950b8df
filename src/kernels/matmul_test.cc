// SPDX-License-Identifier: Apache-2.0
// Compares products of every table with the scalar table bit by bit, and the scalar table with
// double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "base/float16.h"
#include "kernels/table.h"
#include "tests/support/kernel_tables.h"
#include "tests/support/near.h"

namespace outrider::kernels {
namespace {

using test::AlignedBytes;
using test::near;
using test::product_tolerance;
using test::same_bits;

constexpr WeightKind kKinds[] = {WeightKind::f32, WeightKind::bf16, WeightKind::int8,
                                 WeightKind::int4};
constexpr int kDepths[] = {1, 12, 31, 32, 33, 64, 172, 257};
constexpr int kRowCounts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17, 28, 33};
constexpr int kMaxRows = 33;

int index_of(WeightKind kind) { return static_cast<int>(kind); }

// A weight matrix (n_columns, k) of one format, as random as it allows.
struct Weights {
  WeightKind kind;
  int n_columns;
  int k;
  std::vector<float> f32;
  std::vector<std::uint16_t> bf16;
  std::vector<std::int8_t> int8;  // -128..127
  std::vector<std::uint8_t> int4;
  std::vector<std::uint16_t> scales;
  std::vector<std::uint16_t> minimums;

  Weights(WeightKind the_kind, int columns, int depth, unsigned seed)
      : kind(the_kind), n_columns(columns), k(depth) {
    std::mt19937 generator(seed);
    const auto n = static_cast<std::size_t>(columns) * static_cast<std::size_t>(depth);
    const auto n_groups = static_cast<std::size_t>(columns * groups_of(depth));
    f32 = test::awkward_floats(n, seed);
    for (const float value : f32) bf16.push_back(to_bf16(value).bits);
    for (std::size_t i = 0; i < n; ++i) {
      int8.push_back(static_cast<std::int8_t>(generator()));
      int4.push_back(static_cast<std::uint8_t>(generator() & 15));
    }
    for (std::size_t i = 0; i < n_groups; ++i) {
      // Normal, subnormal and zero scales of both signs.
      scales.push_back(static_cast<std::uint16_t>(generator() & 0xa3ff));
      minimums.push_back(static_cast<std::uint16_t>(generator() & 0xb7ff));
    }
  }

  double value(int column, int i) const {
    const auto at = static_cast<std::size_t>(column * k + i);
    const auto group = static_cast<std::size_t>(column * groups_of(k) + i / kGroup);
    const double scale = to_float(F16{scales[group]});
    switch (kind) {
      case WeightKind::f32:
        return f32[at];
      case WeightKind::bf16:
        return to_float(Bf16{bf16[at]});
      case WeightKind::int8:
        return scale * int8[at];
      case WeightKind::int4:
        return scale * int4[at] + to_float(F16{minimums[group]});
      default:
        return NAN;
    }
    return NAN;
  }

  AlignedBytes pack(const KernelTable& table) const {
    const std::size_t tile_bytes = table.format(kind).tile_bytes(k);
    const int n_tiles = (n_columns + kTileColumns - 1) / kTileColumns;
    AlignedBytes tiles = test::aligned_bytes(tile_bytes * static_cast<std::size_t>(n_tiles));
    for (int tile = 0; tile < n_tiles; ++tile) {
      TileSource source{};
      source.k = k;
      for (int i = 0; i < kTileColumns && tile * kTileColumns + i < n_columns; ++i) {
        const int column = tile * kTileColumns + i;
        const auto at = static_cast<std::size_t>(column) * static_cast<std::size_t>(k);
        const auto group_at = static_cast<std::size_t>(column * groups_of(k));
        const void* const values[] = {f32.data() + at, bf16.data() + at, int8.data() + at,
                                      int4.data() + at};
        source.values[i] = values[index_of(kind)];
        source.numbers[i].scales = scales.data() + group_at;
        source.numbers[i].minimums = minimums.data() + group_at;
      }
      table.format(kind).pack_tile(source,
                                   tiles.get() + static_cast<std::size_t>(tile) * tile_bytes);
    }
    return tiles;
  }
};

// Inputs (n_rows, k), rows with gaps between them, and their quantised form.
struct Inputs {
  int n_rows;
  int k;
  std::size_t stride;
  std::vector<float> x;
  std::vector<std::int8_t> quantized;
  std::vector<float> scales;
  std::vector<std::int32_t> sums;
  std::vector<float> scaled_sums;
  std::vector<std::uint16_t> rounded;  // bf16, rounded as round_row promises
  int slots;

  Inputs(int rows, int depth, unsigned seed)
      : n_rows(rows), k(depth), stride(static_cast<std::size_t>(depth) + 3) {
    const auto groups = static_cast<std::size_t>(groups_of(depth));
    const auto n = static_cast<std::size_t>(rows);
    // Memory for any part of the rows; its other contents must not matter, so they are not zero.
    slots = 2 * row_slots(rows);
    const std::size_t places = groups * static_cast<std::size_t>(slots);
    x = test::awkward_floats(n * stride, seed);
    quantized.assign(places * kGroup, 77);
    scales.assign(places, NAN);
    sums.assign(places, 99);
    scaled_sums.assign(places, NAN);
    rounded.assign(places * kGroup, 0x7fc0);
    for (std::size_t row = 0; row < n; ++row) {
      kScalarTable.quantize_row(&x[row * stride], depth,
                                {.values = &quantized[row * kGroup],
                                 .scales = &scales[row],
                                 .sums = &sums[row],
                                 .scaled_sums = &scaled_sums[row],
                                 .slots = slots});
      for (int i = 0; i < static_cast<int>(groups) * kGroup; ++i) {
        rounded[place(static_cast<int>(row), i / kGroup) * kGroup +
                static_cast<std::size_t>(i % kGroup)] =
            i < depth ? to_bf16(x[row * stride + static_cast<std::size_t>(i)]).bits
                      : std::uint16_t{0};
      }
    }
  }

  // The index of a row's group among the prepared inputs.
  std::size_t place(int row, int group) const {
    return static_cast<std::size_t>(group) * static_cast<std::size_t>(slots) +
           static_cast<std::size_t>(row);
  }
  int quantized_at(int row, int i) const {
    return quantized[place(row, i / kGroup) * kGroup + static_cast<std::size_t>(i % kGroup)];
  }

  // Rows [first, first + n) times tiles [first_tile, first_tile + n_tiles).
  MatmulArgs args(int first, int n, const AlignedBytes& tiles, int n_columns) const {
    const auto row = static_cast<std::size_t>(first);
    MatmulArgs args{};
    args.tiles = tiles.get();
    args.n_tiles = (n_columns + kTileColumns - 1) / kTileColumns;
    args.n_columns = n_columns;
    args.k = k;
    args.n_rows = n;
    args.x = &x[row * stride];
    args.x_stride = stride;
    args.slots = slots;
    args.quantized = &quantized[row * kGroup];
    args.quantized_scales = &scales[row];
    args.quantized_sums = &sums[row];
    args.scaled_sums = &scaled_sums[row];
    args.rounded = &rounded[row * kGroup];
    return args;
  }
};

// y (n, n_columns) for rows [first, first + n). Checks that nothing else is written: each row of y
// is followed by cells that must not change.
std::vector<float> product(const KernelTable& table, WeightKind kind, const Inputs& inputs,
                           int first, int n, const AlignedBytes& tiles, int n_columns) {
  constexpr float kUntouched = 12345;
  constexpr std::size_t kGap = 20;
  const auto columns = static_cast<std::size_t>(n_columns);
  std::vector<float> y(static_cast<std::size_t>(n) * (columns + kGap), kUntouched);
  MatmulArgs args = inputs.args(first, n, tiles, n_columns);
  args.y = y.data();
  args.y_stride = columns + kGap;
  table.format(kind).matmul(args);
  std::vector<float> result;
  for (std::size_t row = 0; row < static_cast<std::size_t>(n); ++row) {
    const auto begin = y.begin() + static_cast<std::ptrdiff_t>(row * (columns + kGap));
    result.insert(result.end(), begin, begin + n_columns);
    for (std::size_t i = 0; i < kGap; ++i) {
      EXPECT_EQ(begin[static_cast<std::ptrdiff_t>(columns + i)], kUntouched);
    }
  }
  return result;
}

// For every format, depth, number of columns and number of rows: rows together have the bits that
// the scalar table gives for each row alone. So tables are equal, and batches are invariant.
TEST(Matmul, EveryTableAndRowCountGivesTheScalarTablesSingleRows) {
  for (const WeightKind kind : kKinds) {
    for (const int k : kDepths) {
      const Inputs inputs(kMaxRows, k, 100U + static_cast<unsigned>(k));
      for (int n_columns = 1; n_columns <= 83; n_columns += n_columns < 40 ? 1 : 9) {
        const Weights weights(kind, n_columns, k, static_cast<unsigned>(k * 64 + n_columns));
        const AlignedBytes scalar_tiles = weights.pack(kScalarTable);
        std::vector<float> singles;
        for (int row = 0; row < kMaxRows; ++row) {
          const std::vector<float> one =
              product(kScalarTable, kind, inputs, row, 1, scalar_tiles, n_columns);
          singles.insert(singles.end(), one.begin(), one.end());
        }
        for (const auto& [name, table] : test::runnable_tables()) {
          if (kind == WeightKind::bf16 && table->round_row != nullptr) continue;
          const AlignedBytes tiles = weights.pack(*table);
          for (const int n_rows : kRowCounts) {
            const std::vector<float> expected(singles.begin(),
                                              singles.begin() + n_rows * n_columns);
            ASSERT_TRUE(
                same_bits(product(*table, kind, inputs, 0, n_rows, tiles, n_columns), expected))
                << name << " kind " << index_of(kind) << " k " << k << " columns " << n_columns
                << " rows " << n_rows;
          }
        }
      }
    }
  }
}

// Many rows are computed in several blocks.
TEST(Matmul, ManyRowsGiveTheBitsOfSingleRows) {
  constexpr int kDepth = 321;
  constexpr int kColumns = 16 * 5 + 7;
  for (const int n_rows : {64, 100, 128, 131, 161, 257}) {
    const Inputs inputs(n_rows, kDepth, 5);
    for (const WeightKind kind : kKinds) {
      const Weights weights(kind, kColumns, kDepth, 6);
      for (const auto& [name, table] : test::runnable_tables()) {
        const AlignedBytes tiles = weights.pack(*table);
        const std::vector<float> together =
            product(*table, kind, inputs, 0, n_rows, tiles, kColumns);
        for (const int row : {0, 1, 15, 16, 33, n_rows / 2, n_rows - 1}) {
          const auto at = together.begin() + static_cast<std::ptrdiff_t>(row * kColumns);
          EXPECT_TRUE(same_bits(std::vector<float>(at, at + kColumns),
                                product(*table, kind, inputs, row, 1, tiles, kColumns)))
              << name << " kind " << index_of(kind) << " rows " << n_rows << " row " << row;
        }
      }
    }
  }
}

// Deep matrices as well: several blocks of groups, the last one whole, short, odd or a ragged
// group.
TEST(Matmul, DeepProductsGiveTheScalarTablesSingleRows) {
  constexpr int kColumns = 16 * 2 + 7;
  for (const int k : {1024, 1025, 1088, 2048, 2049, 2081, 4129}) {
    const Inputs inputs(65, k, 7);
    for (const WeightKind kind : kKinds) {
      const Weights weights(kind, kColumns, k, 8);
      const AlignedBytes scalar_tiles = weights.pack(kScalarTable);
      for (const auto& [name, table] : test::runnable_tables()) {
        const bool own = kind == WeightKind::bf16 && table->round_row != nullptr;
        const AlignedBytes tiles = weights.pack(*table);
        for (const int n_rows : {7, 16, 17, 33, 65}) {
          const std::vector<float> together =
              product(*table, kind, inputs, 0, n_rows, tiles, kColumns);
          for (const int row : {0, 6, n_rows / 2, n_rows - 1}) {
            const auto at = together.begin() + static_cast<std::ptrdiff_t>(row * kColumns);
            EXPECT_TRUE(same_bits(std::vector<float>(at, at + kColumns),
                                  product(own ? *table : kScalarTable, kind, inputs, row, 1,
                                          own ? tiles : scalar_tiles, kColumns)))
                << name << " kind " << index_of(kind) << " k " << k << " rows " << n_rows << " row "
                << row;
          }
        }
      }
    }
  }
}

// Tables with their own arithmetic for bf16 weights: any number of rows gives the bits of single
// rows. These are within the rounding of k products (of bf16 inputs, exact in f32) added in any
// order. Subnormals, below 2^-126, may be flushed to zero, in inputs and weights (of up to some
// hundreds).
TEST(Matmul, Bf16OfPairsIsBatchInvariantAndNear) {
  for (const auto& [name, table] : test::runnable_tables()) {
    if (table->round_row == nullptr) continue;
    for (const int k : kDepths) {
      const Inputs inputs(kMaxRows, k, 100U + static_cast<unsigned>(k));
      for (const int n_columns : {1, 15, 16, 17, 33, 48, 64, 80, 83}) {
        const Weights weights(WeightKind::bf16, n_columns, k,
                              static_cast<unsigned>(k * 64 + n_columns));
        const AlignedBytes tiles = weights.pack(*table);
        std::vector<float> singles;
        for (int row = 0; row < kMaxRows; ++row) {
          const std::vector<float> one =
              product(*table, WeightKind::bf16, inputs, row, 1, tiles, n_columns);
          for (int column = 0; column < n_columns; ++column) {
            double expected = 0;
            double magnitudes = 0;
            for (int i = 0; i < k; ++i) {
              const auto at = inputs.place(row, i / kGroup) * kGroup;
              const double x =
                  to_float(Bf16{inputs.rounded[at + static_cast<std::size_t>(i % kGroup)]});
              expected += x * weights.value(column, i);
              magnitudes += std::fabs(x * weights.value(column, i));
            }
            ASSERT_TRUE(near(one[static_cast<std::size_t>(column)], expected,
                             product_tolerance(k + 2, magnitudes) + k * 0x1p-116))
                << name << " k " << k << " column " << column;
          }
          singles.insert(singles.end(), one.begin(), one.end());
        }
        for (const int n_rows : kRowCounts) {
          const std::vector<float> expected(singles.begin(), singles.begin() + n_rows * n_columns);
          ASSERT_TRUE(same_bits(
              product(*table, WeightKind::bf16, inputs, 0, n_rows, tiles, n_columns), expected))
              << name << " k " << k << " columns " << n_columns << " rows " << n_rows;
        }
      }
    }
  }
}

TEST(Matmul, NoRowsWriteNothing) {
  constexpr int kDepth = 40;
  constexpr int kColumns = 90;
  const Inputs inputs(1, kDepth, 1);
  for (const WeightKind kind : kKinds) {
    const Weights weights(kind, kColumns, kDepth, 2);
    for (const auto& [name, table] : test::runnable_tables()) {
      const AlignedBytes tiles = weights.pack(*table);
      const std::vector<float> untouched(kColumns, 12345);
      std::vector<float> y = untouched;
      MatmulArgs args = inputs.args(0, 0, tiles, kColumns);
      args.y = y.data();
      args.y_stride = kColumns;
      table->format(kind).matmul(args);
      EXPECT_EQ(y, untouched) << name << " kind " << index_of(kind);
    }
  }
}

// For any number of tiles per call, and so any distance between tiles computed together, the bits
// are those of calls for one tile each.
TEST(Matmul, AnySplitOfTheTilesGivesTheSameBits) {
  constexpr int kDepth = 70;
  constexpr int kTiles = 14;
  constexpr int kColumns = kTileColumns * (kTiles - 1) + 3;
  constexpr int kRows = 9;
  const Inputs inputs(kRows, kDepth, 1);
  for (const WeightKind kind : kKinds) {
    const Weights weights(kind, kColumns, kDepth, 2);
    for (const auto& [name, table] : test::runnable_tables()) {
      const AlignedBytes tiles = weights.pack(*table);
      for (int n_rows = 1; n_rows <= kRows; ++n_rows) {
        std::vector<float> y(static_cast<std::size_t>(n_rows * kColumns));
        const auto multiply = [&](int first_tile, int n_tiles) {
          MatmulArgs args = inputs.args(0, n_rows, tiles, kColumns);
          args.y = y.data();
          args.y_stride = kColumns;
          args.first_tile = first_tile;
          args.n_tiles = n_tiles;
          table->format(kind).matmul(args);
        };
        for (int tile = 0; tile < kTiles; ++tile) multiply(tile, 1);
        const std::vector<float> expected = y;
        for (int split = 0; split <= kTiles; ++split) {
          y.assign(y.size(), NAN);
          multiply(0, split);
          multiply(split, kTiles - split);
          EXPECT_TRUE(same_bits(y, expected))
              << name << " kind " << index_of(kind) << " rows " << n_rows << " split at " << split;
        }
      }
    }
  }
}

// Compares the scalar table with double sums over its inputs. f32, bf16: k fused multiply-adds.
// int8: two roundings per group (product of scales, fused multiply-add). int4: four, and the
// magnitudes are those of its two parts, scale * q * x and minimum * x, summed exactly per group.
TEST(Matmul, ScalarTableMatchesDoubleArithmetic) {
  for (const WeightKind kind : kKinds) {
    for (const int k : kDepths) {
      constexpr int kColumns = 20;
      constexpr int kRows = 3;
      const Inputs inputs(kRows, k, static_cast<unsigned>(k));
      const Weights weights(kind, kColumns, k, static_cast<unsigned>(k + 1));
      const AlignedBytes tiles = weights.pack(kScalarTable);
      const std::vector<float> y = product(kScalarTable, kind, inputs, 0, kRows, tiles, kColumns);
      const bool plain = kind == WeightKind::f32 || kind == WeightKind::bf16;
      const auto groups = static_cast<std::size_t>(groups_of(k));
      for (int row = 0; row < kRows; ++row) {
        for (int column = 0; column < kColumns; ++column) {
          double expected = 0;
          double magnitudes = 0;
          for (int i = 0; i < k; ++i) {
            const auto r = static_cast<std::size_t>(row);
            const auto at = static_cast<std::size_t>(i);
            const double x = plain ? double{inputs.x[r * inputs.stride + at]}
                                   : double{inputs.scales[inputs.place(row, i / kGroup)]} *
                                         inputs.quantized_at(row, i);
            expected += weights.value(column, i) * x;
            magnitudes += std::fabs(weights.value(column, i) * x);
            if (kind == WeightKind::int4) {
              const auto group = static_cast<std::size_t>(column) * groups + at / kGroup;
              magnitudes += 2 * std::fabs(to_float(F16{weights.minimums[group]}) * x);
            }
          }
          const int n_roundings = plain ? k : 4 * groups_of(k);
          ASSERT_TRUE(near(y[static_cast<std::size_t>(row * kColumns + column)], expected,
                           product_tolerance(n_roundings, magnitudes)))
              << "kind " << index_of(kind) << " k " << k;
        }
      }
    }
  }
}

// The order of operations that table.h fixes, implemented again: exact bits, so that the tables
// cannot all change together unnoticed.
float documented_product(const Weights& weights, const Inputs& inputs, int row, int column) {
  const auto r = static_cast<std::size_t>(row);
  const int k = weights.k;
  float sum = 0;
  if (weights.kind == WeightKind::f32 || weights.kind == WeightKind::bf16) {
    for (int i = 0; i < k; ++i) {
      const auto weight = static_cast<float>(weights.value(column, i));
      sum = std::fma(inputs.x[r * inputs.stride + static_cast<std::size_t>(i)], weight, sum);
    }
    return sum;
  }
  const auto groups = static_cast<std::size_t>(groups_of(k));
  for (std::size_t group = 0; group < groups; ++group) {
    std::int32_t dot = 0;
    for (std::size_t i = group * kGroup; i < std::min<std::size_t>((group + 1) * kGroup, k); ++i) {
      const std::size_t at = static_cast<std::size_t>(column * k) + i;
      const int q = weights.kind == WeightKind::int8 ? weights.int8[at] : weights.int4[at];
      dot += q * inputs.quantized_at(row, static_cast<int>(i));
    }
    const std::size_t at = static_cast<std::size_t>(column) * groups + group;
    const std::size_t place = inputs.place(row, static_cast<int>(group));
    const float input_scale = inputs.scales[place];
    const float scale = to_float(F16{weights.scales[at]}) * input_scale;
    sum = std::fma(static_cast<float>(dot), scale, sum);
    if (weights.kind == WeightKind::int4) {
      const float scaled_sum = static_cast<float>(inputs.sums[place]) * input_scale;
      sum = std::fma(scaled_sum, to_float(F16{weights.minimums[at]}), sum);
    }
  }
  return sum;
}

TEST(Matmul, ScalarTableFollowsTheDocumentedOrder) {
  constexpr int kColumns = 20;
  constexpr int kRows = 3;
  for (const WeightKind kind : kKinds) {
    for (const int k : kDepths) {
      const Inputs inputs(kRows, k, static_cast<unsigned>(k));
      const Weights weights(kind, kColumns, k, static_cast<unsigned>(k + 1));
      std::vector<float> expected;
      for (int row = 0; row < kRows; ++row) {
        for (int column = 0; column < kColumns; ++column) {
          expected.push_back(documented_product(weights, inputs, row, column));
        }
      }
      EXPECT_TRUE(same_bits(
          product(kScalarTable, kind, inputs, 0, kRows, weights.pack(kScalarTable), kColumns),
          expected))
          << "kind " << index_of(kind) << " k " << k;
    }
  }
}

// The extreme integers: -128 * -127, 127 * 127 and mixed signs, where saturating multiply-adds and
// wrong handling of -128 fail. The exact sums are known.
TEST(Matmul, ExtremeIntegersAreExact) {
  constexpr int kDepth = 64;
  for (const int weight : {-128, -127, 127}) {
    for (const int input : {-127, 127}) {
      Weights weights(WeightKind::int8, kTileColumns, kDepth, 1);
      for (std::int8_t& q : weights.int8) q = static_cast<std::int8_t>(weight);
      for (std::uint16_t& scale : weights.scales) scale = to_f16(1.0F).bits;
      Inputs inputs(2, kDepth, 1);
      for (std::int8_t& q : inputs.quantized) q = static_cast<std::int8_t>(input);
      for (float& scale : inputs.scales) scale = 1;
      for (std::int32_t& sum : inputs.sums) sum = kGroup * input;
      for (const auto& [name, table] : test::runnable_tables()) {
        const std::vector<float> y =
            product(*table, WeightKind::int8, inputs, 0, 2, weights.pack(*table), kTileColumns);
        const auto expected = static_cast<float>(kDepth * weight * input);
        for (const float value : y) EXPECT_EQ(value, expected) << name;
      }
    }
  }
  for (const int input : {-127, 127}) {
    Weights weights(WeightKind::int4, kTileColumns, kDepth, 1);
    for (std::uint8_t& q : weights.int4) q = 15;
    for (std::uint16_t& scale : weights.scales) scale = to_f16(1.0F).bits;
    for (std::uint16_t& minimum : weights.minimums) minimum = to_f16(-8.0F).bits;
    Inputs inputs(2, kDepth, 1);
    for (std::int8_t& q : inputs.quantized) q = static_cast<std::int8_t>(input);
    for (float& scale : inputs.scales) scale = 1;
    for (float& sum : inputs.scaled_sums) sum = static_cast<float>(kGroup * input);
    for (const auto& [name, table] : test::runnable_tables()) {
      const std::vector<float> y =
          product(*table, WeightKind::int4, inputs, 0, 2, weights.pack(*table), kTileColumns);
      for (const float value : y) EXPECT_EQ(value, static_cast<float>(kDepth * 7 * input)) << name;
    }
  }
}

TEST(Matmul, TilesAreWholeCacheLines) {
  for (const auto& [name, table] : test::runnable_tables()) {
    for (const WeightKind kind : kKinds) {
      for (const int k : kDepths) EXPECT_EQ(table->format(kind).tile_bytes(k) % 64, 0U) << name;
    }
  }
}

}  // namespace
}  // namespace outrider::kernels
