// SPDX-License-Identifier: Apache-2.0
// Products with weights in file formats (formats/block_formats.h). Compares every table bit by bit
// with the documented arithmetic, implemented again from codes and scales; and that with double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "base/float16.h"
#include "kernels/table.h"
#include "tests/support/kernel_tables.h"
#include "tests/support/near.h"
#include "tests/support/prepared_inputs.h"

namespace outrider::kernels {
namespace {

using test::AlignedBytes;
using test::near;
using test::product_tolerance;
using test::same_bits;

// A format's numbers besides its codes (formats/scales.h).
enum class Scales { f16, f16_minimum, f32, sub, sub_minimum, halves, halves_minimum };

struct Format {
  WeightKind kind;
  Scales scales;
  int n_codes;
  std::function<int(int)> value;  // from a code
  int max_sub_scale;              // 0: none
  bool signed_sub_scales;

  bool of_256() const { return max_sub_scale > 0; }
  bool has_halves() const { return scales == Scales::halves || scales == Scales::halves_minimum; }
  bool has_minimums() const {
    return scales == Scales::f16_minimum || scales == Scales::sub_minimum ||
           scales == Scales::halves_minimum;
  }
};

int non_linear(int code) {
  constexpr int kValues[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                             1,    13,   25,  38,  53,  69,  89,  113};
  return kValues[code];
}
int twice_a_float(int code) {
  constexpr int kSizes[] = {0, 1, 2, 3, 4, 6, 8, 12};
  return code < 8 ? kSizes[code] : -kSizes[code - 8];
}
auto less(int offset) {
  return [offset](int code) { return code - offset; };
}

std::vector<Format> formats() {
  return {{WeightKind::q2_k, Scales::halves_minimum, 4, less(0), 15, false},
          {WeightKind::q3_k, Scales::halves, 8, less(4), 32, true},
          {WeightKind::q4_k, Scales::sub_minimum, 16, less(0), 63, false},
          {WeightKind::q5_0, Scales::f16, 32, less(16), 0, false},
          {WeightKind::q5_1, Scales::f16_minimum, 32, less(0), 0, false},
          {WeightKind::q5_k, Scales::sub_minimum, 32, less(0), 63, false},
          {WeightKind::q6_k, Scales::halves, 64, less(32), 128, true},
          {WeightKind::iq4_nl, Scales::f16, 16, non_linear, 0, false},
          {WeightKind::iq4_xs, Scales::sub, 16, non_linear, 32, true},
          {WeightKind::mxfp4, Scales::f32, 16, twice_a_float, 0, false}};
}

struct Weights {
  const Format& format;
  int n_columns;
  int k;
  std::vector<std::uint8_t> codes;
  std::vector<std::uint16_t> scales;
  std::vector<std::uint16_t> minimums;
  std::vector<std::int8_t> sub_scales;
  std::vector<std::uint8_t> sub_minimums;
  std::vector<float> f32_scales;

  Weights(const Format& the_format, int columns, int depth, unsigned seed)
      : format(the_format), n_columns(columns), k(depth) {
    std::mt19937 generator(seed);
    const auto below = [&](int n) {
      return static_cast<int>(generator() % static_cast<unsigned>(n));
    };
    for (int i = 0; i < columns * depth; ++i) {
      codes.push_back(static_cast<std::uint8_t>(below(format.n_codes)));
    }
    for (int i = 0; i < columns * n_scales(); ++i) {
      // Normal, subnormal and zero scales of both signs.
      scales.push_back(static_cast<std::uint16_t>(generator() & 0xa3ff));
      minimums.push_back(static_cast<std::uint16_t>(generator() & 0xb7ff));
      f32_scales.push_back(std::ldexp(1.0F, below(40) - 20));
    }
    const int most = format.max_sub_scale;
    for (int i = 0; i < columns * n_sub_scales() && most > 0; ++i) {
      sub_scales.push_back(static_cast<std::int8_t>(
          format.signed_sub_scales ? below(2 * most) - most : below(most + 1)));
      sub_minimums.push_back(static_cast<std::uint8_t>(below(most + 1)));
    }
  }

  int n_scales() const { return k / (format.of_256() ? 256 : kGroup); }  // per row
  int n_sub_scales() const { return k / (format.has_halves() ? 16 : kGroup); }
  int value(int column, int i) const {
    return format.value(codes[static_cast<std::size_t>(column * k + i)]);
  }
  std::size_t scale_place(int column, int i) const {
    return static_cast<std::size_t>(column * n_scales() + i / (format.of_256() ? 256 : kGroup));
  }
  std::size_t sub_place(int column, int i) const {
    return static_cast<std::size_t>(column * n_sub_scales() +
                                    i / (format.has_halves() ? 16 : kGroup));
  }
  float scale(int column, int i) const {
    const std::size_t at = scale_place(column, i);
    return format.scales == Scales::f32 ? f32_scales[at] : to_float(F16{scales[at]});
  }
  float minimum(int column, int i) const { return to_float(F16{minimums[scale_place(column, i)]}); }
  int sub_scale(int column, int i) const { return sub_scales[sub_place(column, i)]; }
  int sub_minimum(int column, int i) const { return sub_minimums[sub_place(column, i)]; }

  // The part with the code, and the part that all elements of a group share, in double.
  double scaled(int column, int i) const {
    const double step = double{scale(column, i)} * (format.of_256() ? sub_scale(column, i) : 1);
    return step * value(column, i);
  }
  double offset(int column, int i) const {
    if (!format.has_minimums()) return 0;
    return format.of_256() ? -double{minimum(column, i)} * sub_minimum(column, i)
                           : double{minimum(column, i)};
  }

  AlignedBytes pack(const KernelTable& table, int columns) const {
    const WeightFormat& layout = table.format(format.kind);
    const int n_tiles = (columns + kTileColumns - 1) / kTileColumns;
    AlignedBytes tiles =
        test::aligned_bytes(layout.tile_bytes(k) * static_cast<std::size_t>(n_tiles));
    for (int tile = 0; tile < n_tiles; ++tile) {
      TileSource source{};
      source.k = k;
      for (int i = 0; i < kTileColumns && tile * kTileColumns + i < columns; ++i) {
        const int column = tile * kTileColumns + i;
        source.values[i] = codes.data() + static_cast<std::ptrdiff_t>(column) * k;
        source.numbers[i] = {.scales = scales.data() + scale_place(column, 0),
                             .minimums = minimums.data() + scale_place(column, 0),
                             .sub_scales = sub_scales.data() + sub_place(column, 0),
                             .sub_minimums = sub_minimums.data() + sub_place(column, 0),
                             .f32_scales = f32_scales.data() + scale_place(column, 0)};
      }
      layout.pack_tile(source, tiles.get() + static_cast<std::size_t>(tile) * layout.tile_bytes(k));
    }
    return tiles;
  }
};

// Quantised inputs (n_rows, k), in memory for more rows, whose contents must not matter.
struct Inputs : test::PreparedInputs {
  Inputs(const KernelTable& table, int rows, int depth, unsigned seed)
      : PreparedInputs(table,
                       test::awkward_floats(
                           static_cast<std::size_t>(rows) * static_cast<std::size_t>(depth), seed),
                       rows, depth, row_slots(rows) + 8) {}
  std::size_t place(int row, int i) const {
    return static_cast<std::size_t>(i / kGroup * slots + row);
  }
  int value(int row, int i) const {
    return values[place(row, i) * kGroup + static_cast<std::size_t>(i % kGroup)];
  }

  std::size_t block_place(int row, int i) const {
    return static_cast<std::size_t>(i / kBlock * slots + row);
  }
  int block_value(int row, int i) const {
    return block_values[static_cast<std::size_t>((i / kBlockRun * slots + row) * kBlockRun +
                                                 i % kBlockRun)];
  }
  // The scale that a format's products read.
  float scale_of(const Format& format, int row, int i) const {
    return format.of_256() ? block_scales[block_place(row, i)] : scales[place(row, i)];
  }
  int value_of(const Format& format, int row, int i) const {
    return format.of_256() ? block_value(row, i) : value(row, i);
  }

  // y (n, n_columns) for the first n rows; in two calls if n_first_tiles is neither 0 nor all.
  std::vector<float> product(const WeightFormat& format, const AlignedBytes& tiles, int n,
                             int n_columns, int n_first_tiles = 0) const {
    std::vector<float> y(static_cast<std::size_t>(n * n_columns), NAN);
    MatmulArgs args = this->args(n);
    args.tiles = tiles.get();
    const int n_tiles = (n_columns + kTileColumns - 1) / kTileColumns;
    args.n_columns = n_columns;
    args.y = y.data();
    args.y_stride = static_cast<std::size_t>(n_columns);
    if (n_first_tiles > 0) {
      args.n_tiles = n_first_tiles;
      format.matmul(args);
    }
    args.first_tile = n_first_tiles;
    args.n_tiles = n_tiles - n_first_tiles;
    format.matmul(args);
    return y;
  }
};

// The orders of operations in formats/scales.h.
float product_of_groups(const Weights& weights, const Inputs& inputs, int row, int column) {
  float sum = 0;
  for (int first = 0; first < weights.k; first += kGroup) {
    const float x_scale = inputs.scales[inputs.place(row, first)];
    std::int32_t dot = 0;
    std::int32_t x_sum = 0;
    for (int i = first; i < first + kGroup; ++i) {
      dot += weights.value(column, i) * inputs.value(row, i);
      x_sum += inputs.value(row, i);
    }
    sum = std::fma(static_cast<float>(dot), weights.scale(column, first) * x_scale, sum);
    if (!weights.format.has_minimums()) continue;
    sum = std::fma(static_cast<float>(x_sum) * x_scale, weights.minimum(column, first), sum);
  }
  return sum;
}

float product_of_blocks(const Weights& weights, const Inputs& inputs, int row, int column) {
  float sum = 0;
  for (int first = 0; first < weights.k; first += kBlock) {
    std::int64_t whole = 0;
    std::int64_t least = 0;
    for (int i = first; i < first + kBlock; ++i) {
      const int x = inputs.block_value(row, i);
      whole += std::int64_t{weights.sub_scale(column, i)} * weights.value(column, i) * x;
      least += std::int64_t{weights.sub_minimum(column, i)} * x;
    }
    const float x_scale = inputs.block_scales[inputs.block_place(row, first)];
    float value = static_cast<float>(whole) * weights.scale(column, first);
    if (weights.format.has_minimums()) {
      value = std::fma(static_cast<float>(least), -weights.minimum(column, first), value);
    }
    sum = std::fma(value, x_scale, sum);
  }
  return sum;
}

float documented_product(const Weights& weights, const Inputs& inputs, int row, int column) {
  return weights.format.of_256() ? product_of_blocks(weights, inputs, row, column)
                                 : product_of_groups(weights, inputs, row, column);
}

TEST(BlockFormats, EveryTableFollowsTheDocumentedOrderForAnyRowsAndColumns) {
  constexpr int kRows = 40;
  constexpr int kColumns = 40;
  for (const Format& format : formats()) {
    const auto depths =
        format.of_256() ? std::vector<int>{256, 768} : std::vector<int>{32, 96, 160};
    for (const int k : depths) {
      const Weights weights(format, kColumns, k, static_cast<unsigned>(k));
      const Inputs inputs(kScalarTable, kRows, k, 5);
      std::vector<std::vector<float>> expected;
      for (int row = 0; row < kRows; ++row) {
        std::vector<float>& of_row = expected.emplace_back();
        for (int column = 0; column < kColumns; ++column) {
          of_row.push_back(documented_product(weights, inputs, row, column));
        }
      }
      for (const auto& [name, table] : test::runnable_tables()) {
        const WeightFormat& layout = table->format(format.kind);
        EXPECT_EQ(layout.tile_bytes(k) % 64, 0U);
        const ActivationForm reads = !format.of_256()      ? ActivationForm::int8
                                     : format.has_halves() ? ActivationForm::block_halves
                                                           : ActivationForm::blocks;
        EXPECT_EQ(layout.reads, reads);
        for (int n_columns = 1; n_columns <= kColumns; n_columns += n_columns < 36 ? 5 : 1) {
          const AlignedBytes tiles = weights.pack(*table, n_columns);
          for (int n_rows = 1; n_rows <= kRows; n_rows += n_rows < 18 ? 1 : 7) {
            std::vector<float> part;
            for (int row = 0; row < n_rows; ++row) {
              const std::vector<float>& of_row = expected[static_cast<std::size_t>(row)];
              part.insert(part.end(), of_row.begin(), of_row.begin() + n_columns);
            }
            ASSERT_TRUE(same_bits(inputs.product(layout, tiles, n_rows, n_columns), part))
                << name << " " << name_of(format.kind) << " k " << k << " columns " << n_columns
                << " rows " << n_rows;
          }
        }
      }
    }
  }
}

// With many rows, several tiles of weights may be processed together; with very many, rows in
// several blocks.
TEST(BlockFormats, ManyRowsOfWideMatricesGiveTheScalarTablesBits) {
  constexpr int kMaxRows = 16 * 16 + 5;
  constexpr int kColumns = 16 * 9 + 3;
  constexpr int kDepth = 512;
  for (const Format& format : formats()) {
    const Weights weights(format, kColumns, kDepth, 7);
    const Inputs inputs(kScalarTable, kMaxRows, kDepth, 8);
    const std::vector<float> expected = inputs.product(
        kScalarTable.format(format.kind), weights.pack(kScalarTable, kColumns), kMaxRows, kColumns);
    for (const auto& [name, table] : test::runnable_tables()) {
      const AlignedBytes tiles = weights.pack(*table, kColumns);
      for (const int n_rows : {60, 65, 77, 128, kMaxRows}) {
        const auto end = expected.begin() + static_cast<std::ptrdiff_t>(n_rows * kColumns);
        EXPECT_TRUE(same_bits(inputs.product(table->format(format.kind), tiles, n_rows, kColumns),
                              std::vector<float>(expected.begin(), end)))
            << name << " " << name_of(format.kind) << " rows " << n_rows;
      }
    }
  }
}

TEST(BlockFormats, WideMatricesAndAnySplitOfTheirTiles) {
  constexpr int kRows = 9;
  constexpr int kColumns = 16 * 13 + 3;
  constexpr int kDepth = 256;
  for (const Format& format : formats()) {
    const Weights weights(format, kColumns, kDepth, 3);
    const Inputs inputs(kScalarTable, kRows, kDepth, 4);
    const AlignedBytes scalar_tiles = weights.pack(kScalarTable, kColumns);
    for (const int n_rows : {1, 2, 3, 4, 8, 9}) {
      const std::vector<float> expected =
          inputs.product(kScalarTable.format(format.kind), scalar_tiles, n_rows, kColumns);
      for (const auto& [name, table] : test::runnable_tables()) {
        const AlignedBytes tiles = weights.pack(*table, kColumns);
        for (const int n_first_tiles : {0, 1, 4, 6, 13}) {
          EXPECT_TRUE(same_bits(
              inputs.product(table->format(format.kind), tiles, n_rows, kColumns, n_first_tiles),
              expected))
              << name << " " << name_of(format.kind) << " rows " << n_rows << " split at "
              << n_first_tiles;
        }
      }
    }
  }
}

// Compares with double, from the weights that codes and scales represent and the quantised inputs.
// Each group has four roundings and a part of its sum (the product of scales, the sum's, and those
// of minimums).
TEST(BlockFormats, ScalarTableMatchesDoubleArithmetic) {
  constexpr int kRows = 3;
  constexpr int kColumns = 20;
  constexpr int kDepth = 512;
  for (const Format& format : formats()) {
    const Weights weights(format, kColumns, kDepth, 7);
    const Inputs inputs(kScalarTable, kRows, kDepth, 8);
    const std::vector<float> y = inputs.product(
        kScalarTable.format(format.kind), weights.pack(kScalarTable, kColumns), kRows, kColumns);
    for (int row = 0; row < kRows; ++row) {
      for (int column = 0; column < kColumns; ++column) {
        double expected = 0;
        double magnitudes = 0;
        for (int i = 0; i < kDepth; ++i) {
          const double x =
              double{inputs.scale_of(format, row, i)} * inputs.value_of(format, row, i);
          expected += (weights.scaled(column, i) + weights.offset(column, i)) * x;
          magnitudes += std::fabs(weights.scaled(column, i) * x);
          magnitudes += std::fabs(weights.offset(column, i) * x);
        }
        EXPECT_TRUE(near(y[static_cast<std::size_t>(row * kColumns + column)], expected,
                         product_tolerance(4 * groups_of(kDepth), magnitudes)))
            << name_of(format.kind) << " row " << row << " column " << column;
      }
    }
  }
}

// The largest integers that a format allows; the exact sums are known.
TEST(BlockFormats, ExtremeIntegersAreExact) {
  constexpr int kDepth = 256;
  for (const Format& format : formats()) {
    for (const int code : {0, format.n_codes - 1}) {
      for (const int x : {-127, 127}) {
        Weights weights(format, kTileColumns, kDepth, 1);
        for (std::uint8_t& stored : weights.codes) stored = static_cast<std::uint8_t>(code);
        for (std::uint16_t& scale : weights.scales) scale = to_f16(1.0F).bits;
        for (float& scale : weights.f32_scales) scale = 1;
        for (std::uint16_t& minimum : weights.minimums) minimum = 0;
        const int sub_scale =
            format.signed_sub_scales ? -format.max_sub_scale : format.max_sub_scale;
        for (std::int8_t& stored : weights.sub_scales) stored = static_cast<std::int8_t>(sub_scale);
        Inputs inputs(kScalarTable, 2, kDepth, 1);
        const auto fill = [](auto& numbers, auto number) {
          std::fill(numbers.begin(), numbers.end(), number);
        };
        fill(inputs.values, static_cast<std::int8_t>(x));
        fill(inputs.scales, 1.0F);
        fill(inputs.sums, kGroup * x);
        fill(inputs.scaled_sums, static_cast<float>(kGroup * x));
        fill(inputs.block_values, static_cast<std::int8_t>(x));
        fill(inputs.block_scales, 1.0F);
        fill(inputs.group_sums, static_cast<std::int16_t>(kGroup * x));
        fill(inputs.float_sums, static_cast<float>(kGroup * x));
        fill(inputs.half_sums, static_cast<std::int16_t>(kGroup / 2 * x));
        const std::int64_t group =
            std::int64_t{kGroup} * format.value(code) * x * (format.of_256() ? sub_scale : 1);
        float expected = 0;
        if (format.of_256()) {
          expected = static_cast<float>(kBlockGroups * group);
        } else {
          for (int i = 0; i < kDepth; i += kGroup) expected += static_cast<float>(group);
        }
        for (const auto& [name, table] : test::runnable_tables()) {
          const std::vector<float> y = inputs.product(
              table->format(format.kind), weights.pack(*table, kTileColumns), 2, kTileColumns);
          for (const float value : y) {
            EXPECT_EQ(value, expected) << name << " " << name_of(format.kind);
          }
        }
      }
    }
  }
}

// Every table's inputs in blocks: the documented numbers, with zeros and NaNs where they belong.
TEST(BlockFormats, InputsInBlocksAreThoseOfTheRoundedElements) {
  constexpr int kDepth = 4 * kBlock;
  std::vector<float> x = test::awkward_floats(kDepth, 9);
  for (int i = 0; i < kBlock; ++i)
    x[static_cast<std::size_t>(i)] = 0.37F * static_cast<float>(i - 99);
  std::fill(x.begin() + kBlock, x.begin() + 2 * kBlock, 0.0F);
  x[3 * kBlock + 7] = INFINITY;
  for (const auto& [name, table] : test::runnable_tables()) {
    std::vector<std::int8_t> values(kDepth, 77);
    std::vector<float> scales(4, -1);
    std::vector<std::int16_t> groups(4 * kBlockGroups, 99);
    std::vector<float> floats(4 * kBlockGroups, -1);
    std::vector<std::int16_t> halves(8 * kBlockGroups, 99);
    table->quantize_blocks(x.data(), kDepth,
                           {.values = values.data(),
                            .scales = scales.data(),
                            .group_sums = groups.data(),
                            .float_sums = floats.data(),
                            .half_sums = halves.data(),
                            .slots = 1});
    const float largest = 0.37F * 156;
    EXPECT_EQ(scales[0], largest / 127.0F) << name;
    for (int i = 0; i < kBlock; ++i) {
      const float expected = std::nearbyint(x[static_cast<std::size_t>(i)] * (127.0F / largest));
      EXPECT_EQ(values[static_cast<std::size_t>(i)], static_cast<int>(expected))
          << name << " " << i;
    }
    EXPECT_EQ(scales[1], 0) << name;
    EXPECT_TRUE(std::isnan(scales[3])) << name;
    for (std::size_t group = 0; group < groups.size(); ++group) {
      int sums[2] = {0, 0};
      for (std::size_t i = 0; i < kGroup; ++i) sums[i / 16] += values[group * kGroup + i];
      EXPECT_EQ(groups[group], sums[0] + sums[1]) << name;
      EXPECT_EQ(floats[group], static_cast<float>(sums[0] + sums[1])) << name;
      EXPECT_EQ(halves[2 * group], sums[0]) << name;
      EXPECT_EQ(halves[2 * group + 1], sums[1]) << name;
      const bool is_empty = group / kBlockGroups == 1 || group / kBlockGroups == 3;
      if (is_empty) {
        EXPECT_EQ(sums[0] + sums[1], 0) << name;
      }
    }
  }
}

// At most a tenth more than the bytes in a file (Q4_K, Q5_0, Q6_K; 256 weights of 16 rows).
TEST(BlockFormats, PackedWeightsAreHardlyLargerThanTheFiles) {
  const auto bytes = [](WeightKind kind) {
    return static_cast<double>(kScalarTable.format(kind).tile_bytes(256));
  };
  EXPECT_LE(bytes(WeightKind::q4_k), 1.1 * 16 * 144);
  EXPECT_LE(bytes(WeightKind::q5_k), 1.1 * 16 * 176);
  EXPECT_LE(bytes(WeightKind::q6_k), 1.1 * 16 * 210);
  EXPECT_LE(bytes(WeightKind::q5_0), 1.1 * 16 * 8 * 22);
  EXPECT_LE(bytes(WeightKind::q5_1), 1.1 * 16 * 8 * 24);
  EXPECT_LE(bytes(WeightKind::q3_k), 1.1 * 16 * 110);
  EXPECT_LE(bytes(WeightKind::iq4_nl), 1.1 * 16 * 8 * 18);
  EXPECT_LE(bytes(WeightKind::iq4_xs), 1.1 * 16 * 136);
}

}  // namespace
}  // namespace outrider::kernels
