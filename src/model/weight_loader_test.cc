// SPDX-License-Identifier: Apache-2.0
// Matrices of single heads: their rows and columns, and their format in memory.
#include "model/weight_loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/float16.h"
#include "outrider/error.h"
#include "tests/support/kernel_tables.h"

namespace outrider {
namespace {

// Tensors in memory.
class Tensors : public TensorSource {
 public:
  template <typename Number>
  void add(const char* name, ElementType type, const std::vector<std::int64_t>& shape,
           const std::vector<Number>& numbers) {
    std::vector<std::byte>& bytes = bytes_.emplace_back(numbers.size() * sizeof(Number));
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
    views_.push_back({name, type, shape, bytes});
  }
  std::span<const TensorView> tensors() const override { return views_; }
  const TensorView* find(std::string_view name) const override {
    for (const TensorView& view : views_) {
      if (view.name == name) return &view;
    }
    return nullptr;
  }
  std::string description() const override { return "memory"; }
  void release(const TensorView&) const override {}

 private:
  std::vector<std::vector<std::byte>> bytes_;  // the bytes themselves do not move
  std::vector<TensorView> views_;
};

WeightOptions options_of(std::optional<WeightKind> kind) {
  WeightOptions options;
  options.names = NamingScheme::gguf;
  options.kind = kind;
  options.table = &kernels::kScalarTable;
  return options;
}

// (n_columns, k), by products with the rows of a unit matrix.
std::vector<float> weights_of(const Matrix& matrix) {
  const int k = matrix.k();
  const auto n = static_cast<std::size_t>(matrix.n_columns());
  Activations inputs;
  inputs.resize(k, k, matrix.reads());
  for (int i = 0; i < k; ++i) {
    std::fill_n(inputs.row(i), k, 0.0F);
    inputs.row(i)[i] = 1;
    inputs.quantize_row(kernels::kScalarTable, i);
  }
  std::vector<float> y(static_cast<std::size_t>(k) * n);
  run_team(1, [&](const Team& team) { matrix.multiply(team, inputs, y.data(), n); });
  std::vector<float> weights(y.size());
  for (std::size_t i = 0; i < static_cast<std::size_t>(k); ++i) {
    for (std::size_t j = 0; j < n; ++j) weights[j * static_cast<std::size_t>(k) + i] = y[i * n + j];
  }
  return weights;
}

// Two heads of three rows each, (6, 4): row r is r0, r1, r2, r3 in tens and ones.
std::vector<float> rows_of_two_heads() {
  std::vector<float> rows;
  for (int row = 0; row < 6; ++row) {
    for (int column = 0; column < 4; ++column)
      rows.push_back(static_cast<float>(10 * row + column));
  }
  return rows;
}

constexpr HeadRows kFirstTwo = {.n = 2, .n_stored = 3, .first = 0, .n_rows = 2, .transposed = true};
constexpr HeadRows kLast = {.n = 2, .n_stored = 3, .first = 2, .n_rows = 1, .transposed = false};

TEST(MatricesOfHeads, AreTheRowsAskedForAndTurned) {
  Tensors tensors;
  tensors.add("kv.weight", ElementType::f32, {6, 4}, rows_of_two_heads());
  // They ignore a requested quantised format.
  for (const auto kind : {std::optional<WeightKind>{}, std::optional(WeightKind::int8)}) {
    const WeightOptions options = options_of(kind);
    WeightLoader loader(tensors, options);
    std::vector<Matrix> first;
    std::vector<Matrix> last;
    loader.run([&](WeightLoader& walk) {
      first = walk.parts_of_heads("kv", 4, kFirstTwo);
      last = walk.parts_of_heads("kv", 4, kLast);
      return 0;
    });
    ASSERT_EQ(first.size(), 2U);
    ASSERT_EQ(last.size(), 2U);
    EXPECT_EQ(first[0].kind(), WeightKind::f32);
    EXPECT_EQ(weights_of(first[0]), (std::vector<float>{0, 10, 1, 11, 2, 12, 3, 13}));
    EXPECT_EQ(weights_of(first[1]), (std::vector<float>{30, 40, 31, 41, 32, 42, 33, 43}));
    EXPECT_EQ(weights_of(last[0]), (std::vector<float>{20, 21, 22, 23}));
    EXPECT_EQ(weights_of(last[1]), (std::vector<float>{50, 51, 52, 53}));
    EXPECT_TRUE(loader.unread_below("").empty());
  }
  const WeightOptions options = options_of({});
  WeightLoader loader(tensors, options);
  EXPECT_THROW(loader.parts_of_heads("kv", 5, kFirstTwo), Error);
}

// bf16 stays, unless something in the model is quantised.
TEST(MatricesOfHeads, OfBf16AreBf16WhereNothingIsQuantised) {
  std::vector<std::uint16_t> rounded;
  for (const float number : rows_of_two_heads()) rounded.push_back(to_bf16(number).bits);
  Tensors tensors;
  tensors.add("kv.weight", ElementType::bf16, {6, 4}, rounded);
  tensors.add("other.weight", ElementType::q8_0, {1, 32}, std::vector<std::uint8_t>(34));
  for (const bool has_quantised : {false, true}) {
    const WeightOptions options = options_of({});
    WeightLoader loader(tensors, options);
    const std::vector<Matrix> loaded = loader.run([&](WeightLoader& walk) {
      std::vector<Matrix> heads = walk.parts_of_heads("kv", 4, kFirstTwo);
      if (has_quantised) (void)walk.linear("other", 1, 32, Bias::never);
      return heads;
    });
    EXPECT_EQ(loaded[0].kind(), has_quantised ? WeightKind::f32 : WeightKind::bf16);
    EXPECT_EQ(weights_of(loaded[1]), (std::vector<float>{30, 40, 31, 41, 32, 42, 33, 43}));
  }
}

// One tensor with all heads' matrices: blocks stay as stored, or are decoded on request.
TEST(MatricesOfHeads, AreHeldAsTheyAreStored) {
  std::vector<std::uint8_t> blocks;
  std::vector<float> decoded;
  for (int block = 0; block < 6; ++block) {
    const std::uint16_t scale = to_f16(0.5F).bits;
    blocks.push_back(static_cast<std::uint8_t>(scale & 0xff));
    blocks.push_back(static_cast<std::uint8_t>(scale >> 8));
    for (int i = 0; i < 32; ++i) {
      const int code = 16 * block - i;
      blocks.push_back(static_cast<std::uint8_t>(code));
      decoded.push_back(0.5F * static_cast<float>(code));
    }
  }
  Tensors tensors;
  tensors.add("k_b.weight", ElementType::q8_0, {2, 3, 32}, blocks);
  const std::vector<float> second(decoded.begin() + 96, decoded.end());
  for (const auto& [asked, held] : {std::pair{std::optional<WeightKind>{}, WeightKind::int8},
                                    std::pair{std::optional(WeightKind::int4), WeightKind::int8},
                                    std::pair{std::optional(WeightKind::f32), WeightKind::f32}}) {
    const WeightOptions options = options_of(asked);
    WeightLoader loader(tensors, options);
    const std::vector<Matrix> loaded =
        loader.run([&](WeightLoader& walk) { return walk.stacked_heads("k_b.weight", 2, 3, 32); });
    ASSERT_EQ(loaded.size(), 2U);
    EXPECT_EQ(loaded[1].kind(), held);
    EXPECT_EQ(loader.has_quantized(), held == WeightKind::int8);
    if (held == WeightKind::f32) {
      EXPECT_EQ(weights_of(loaded[1]), second);
    }
    const std::vector<float> products = weights_of(loaded[1]);
    for (std::size_t i = 0; i < second.size(); ++i) EXPECT_NEAR(products[i], second[i], 1e-4);
  }
}

}  // namespace
}  // namespace outrider
