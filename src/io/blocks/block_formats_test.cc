// SPDX-License-Identifier: Apache-2.0
// Compares quantised blocks with the package gguf, bit by bit
// (tests/golden/make/make_block_formats_golden.py).
#include "io/blocks/block_formats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/tensor_source.h"

namespace outrider {
namespace {

std::vector<std::byte> from_hex(const std::string& text) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::vector<ElementType> block_types() {
  std::vector<ElementType> types;
  for (int i = 0; i <= static_cast<int>(ElementType::mxfp4); ++i) {
    const auto type = static_cast<ElementType>(i);
    if (find_block_format(type) != nullptr) types.push_back(type);
  }
  return types;
}

TEST(BlockFormats, DecodeToTheReferencesBits) {
  const auto golden =
      nlohmann::json::parse(std::ifstream(OUTRIDER_SOURCE_DIR "/tests/golden/block_formats.json"));
  ASSERT_EQ(block_types().size(), 13U);
  ASSERT_EQ(golden["types"].size(), 13U);
  for (const ElementType type : block_types()) {
    const std::string name(name_of(type));
    ASSERT_TRUE(golden["types"].contains(name)) << name;
    const std::vector<std::byte> bytes = from_hex(golden["types"][name]["bytes"]);
    const std::vector<std::byte> expected = from_hex(golden["types"][name]["f32"]);
    const std::size_t n_blocks = bytes.size() / block_bytes(type);
    const std::size_t n = n_blocks * block_elements(type);
    ASSERT_GT(n_blocks, 0U);
    ASSERT_EQ(expected.size(), n * sizeof(float)) << name;
    std::vector<float> values(n);
    const TensorView view{"w", type, {static_cast<std::int64_t>(n)}, bytes};
    decode_rows(view, 0, 1, values);
    for (std::size_t i = 0; i < n; ++i) {
      float value;
      std::memcpy(&value, expected.data() + i * sizeof value, sizeof value);
      ASSERT_EQ(std::memcmp(&values[i], &value, sizeof value), 0)
          << name << " element " << i << ": " << values[i] << " is not " << value;
    }
  }
}

// Files may hold any bits: all ones are an f16 NaN.
TEST(BlockFormats, ScalesThatAreNoNumbersShow) {
  for (const ElementType type : block_types()) {
    const BlockFormat& format = *find_block_format(type);
    std::vector<float> values(static_cast<std::size_t>(format.elements));
    decode_block(format, std::vector<std::byte>(format.bytes, std::byte{0xff}).data(),
                 values.data());
    if (format.power_of_two_scale) continue;  // no exponent is a NaN there
    for (const float value : values) EXPECT_TRUE(std::isnan(value)) << format.name;
  }
}

TEST(BlockFormats, CodesStayWithinTheValues) {
  for (const ElementType type : block_types()) {
    const BlockFormat& format = *find_block_format(type);
    EXPECT_EQ(format.elements % format.group, 0) << format.name;
    EXPECT_LE(format.elements / format.group, kMaxBlockGroups) << format.name;
    EXPECT_LE(format.elements, kMaxBlockElements) << format.name;
  }
  EXPECT_EQ(find_block_format(ElementType::f32), nullptr);
  EXPECT_EQ(find_block_format(ElementType::boolean), nullptr);
}

}  // namespace
}  // namespace outrider
