// SPDX-License-Identifier: Apache-2.0
// Compares a file's quantised blocks, packed as stored, with the same blocks decoded to floats.
#include "model/stored_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/blocks/block_formats.h"
#include "outrider/error.h"
#include "tensor/matrix.h"
#include "tests/support/kernel_tables.h"
#include "tests/support/near.h"

namespace outrider {
namespace {

struct StoredBlocks {
  ElementType type;
  std::vector<std::byte> bytes;
};

// Random blocks of every type (tests/golden/make/make_block_formats_golden.py).
std::vector<StoredBlocks> stored_blocks() {
  const auto golden =
      nlohmann::json::parse(std::ifstream(OUTRIDER_SOURCE_DIR "/tests/golden/block_formats.json"));
  std::vector<StoredBlocks> all;
  for (int i = 0; i <= static_cast<int>(ElementType::mxfp4); ++i) {
    const auto type = static_cast<ElementType>(i);
    if (find_block_format(type) == nullptr) continue;
    StoredBlocks& blocks = all.emplace_back(StoredBlocks{type, {}});
    const std::string hex = golden["types"][std::string(name_of(type))]["bytes"];
    for (std::size_t at = 0; at + 1 < hex.size(); at += 2) {
      blocks.bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(at, 2), nullptr, 16)));
    }
  }
  return all;
}

// Multiplies each column by inputs that are 127 at one place and zero elsewhere, which int8
// rounding does not change: 127 times each weight, with a few roundings.
void expect_the_decoded_weights(const TensorView& view, int interleaved_head_dim,
                                const KernelTable& table, const std::string& trace) {
  const auto n_rows = static_cast<int>(view.shape[0]);
  const auto k = static_cast<int>(view.shape[1]);
  const WeightKind kind = native_kind(view.type);
  const Matrix matrix = Matrix::pack(StoredWeights(view, kind, interleaved_head_dim), table, 1);
  Activations inputs;
  inputs.resize(k, k, ActivationForms::of(kind, table));
  for (int i = 0; i < k; ++i) {
    std::fill_n(inputs.row(i), k, 0.0F);
    inputs.row(i)[i] = 127;
    inputs.quantize_row(table, i);
  }
  std::vector<float> y(static_cast<std::size_t>(k * n_rows));
  run_team(1, [&](const Team& team) {
    matrix.multiply(team, inputs, y.data(), static_cast<std::size_t>(n_rows));
  });
  for (int row = 0; row < n_rows; ++row) {
    const int half = interleaved_head_dim / 2;
    const int stored = interleaved_head_dim == 0 ? row : 2 * (row % half) + row / half;
    std::vector<float> decoded(static_cast<std::size_t>(k));
    decode_rows(view, stored, 1, decoded);
    double largest = 0;
    for (const float weight : decoded) largest = std::max<double>(largest, std::fabs(weight));
    for (int i = 0; i < k; ++i) {
      ASSERT_TRUE(test::near(y[static_cast<std::size_t>(i * n_rows + row)],
                             127.0 * decoded[static_cast<std::size_t>(i)],
                             test::product_tolerance(6, 2 * 127 * largest)))
          << trace << " row " << row << " weight " << i;
    }
  }
}

TEST(StoredBlocks, MultiplyAsTheyDecode) {
  for (const auto& [name, table] : test::runnable_tables()) {
    // Slow, and its vector products are the same (kernels/amx.cc).
    if (name == "amx emulated") continue;
    for (const StoredBlocks& blocks : stored_blocks()) {
      const std::string trace = name + " " + std::string(name_of(blocks.type));
      const auto n = static_cast<std::int64_t>(block_elements(blocks.type));
      expect_the_decoded_weights({"w", blocks.type, {3, n}, blocks.bytes}, 0, *table, trace);
      expect_the_decoded_weights({"w", blocks.type, {1, 3 * n}, blocks.bytes}, 0, *table, trace);
      // Four rows of one head, as GGUF interleaves them.
      std::vector<std::byte> four = blocks.bytes;
      four.insert(four.end(), blocks.bytes.begin(),
                  blocks.bytes.begin() + static_cast<std::ptrdiff_t>(block_bytes(blocks.type)));
      expect_the_decoded_weights({"w", blocks.type, {4, n}, four}, 4, *table, trace);
    }
  }
}

TEST(StoredBlocks, KeepTheirKinds) {
  EXPECT_EQ(native_kind(ElementType::q4_k), WeightKind::q4_k);
  EXPECT_EQ(native_kind(ElementType::q6_k), WeightKind::q6_k);
  EXPECT_EQ(native_kind(ElementType::q5_0), WeightKind::q5_0);
  EXPECT_EQ(native_kind(ElementType::q8_0), WeightKind::int8);
  EXPECT_EQ(native_kind(ElementType::q4_1), WeightKind::int4);
  for (const StoredBlocks& blocks : stored_blocks()) {
    EXPECT_TRUE(is_weight_type(blocks.type)) << name_of(blocks.type);
  }
  WeightRows rows;
  EXPECT_THROW(quantize_weights(std::vector<float>(256), 1, 256, WeightKind::q4_k, rows), Error);
}

// If another format is requested, they are decoded and rounded.
TEST(StoredBlocks, AreRoundedToOtherKindsOnRequest) {
  for (const StoredBlocks& blocks : stored_blocks()) {
    const auto n = static_cast<std::int64_t>(block_elements(blocks.type));
    const TensorView view{"w", blocks.type, {3, n}, blocks.bytes};
    std::vector<float> decoded(static_cast<std::size_t>(3 * n));
    decode_rows(view, 0, 3, decoded);
    WeightRows rows;
    StoredWeights(view, WeightKind::f32, 0).read(0, 3, rows);
    EXPECT_EQ(rows.f32, decoded) << name_of(blocks.type);
    for (const WeightKind kind : {WeightKind::int8, WeightKind::int4}) {
      if (kind == native_kind(blocks.type)) continue;  // copied, not rounded
      WeightRows rounded;
      quantize_weights(decoded, 3, n, kind, rounded);
      StoredWeights(view, kind, 0).read(0, 3, rows);
      EXPECT_EQ(rows.scales, rounded.scales) << name_of(blocks.type);
      EXPECT_EQ(rows.int8, rounded.int8) << name_of(blocks.type);
      EXPECT_EQ(rows.int4, rounded.int4) << name_of(blocks.type);
      EXPECT_EQ(rows.minimums, rounded.minimums) << name_of(blocks.type);
    }
  }
}

}  // namespace
}  // namespace outrider
