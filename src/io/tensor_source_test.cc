// SPDX-License-Identifier: Apache-2.0
// Compares decode_rows with blocks built here from the published definition of every block type.
// The tests place codes and scales and know the elements without using the decoder's arithmetic.
#include "io/tensor_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/float16.h"
#include "io/test_files.h"
#include "outrider/error.h"

namespace outrider {
namespace {

using test::append;
using test::Bytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// The data begins one byte after an aligned address: files promise no alignment.
struct Unaligned {
  Unaligned(ElementType type, std::vector<std::int64_t> shape, const Bytes& data)
      : storage(data.size() + 1) {
    std::copy(data.begin(), data.end(), storage.begin() + 1);
    view = {"weights", type, std::move(shape), std::span<const std::byte>(storage).subspan(1)};
  }
  std::vector<float> rows(std::int64_t first, std::int64_t n) const {
    std::vector<float> out(static_cast<std::size_t>(n * view.shape.back()));
    decode_rows(view, first, n, out);
    return out;
  }
  Bytes storage;
  TensorView view;
};

// A reproducible spread of codes below `bound`.
int code_at(int i, int bound) { return (i * 37 + 11) % bound; }

TEST(ElementTypes, NamesAndBlockSizes) {
  struct Row {
    ElementType type;
    const char* name;
    std::size_t elements;
    std::size_t bytes;
  };
  // Bytes of the q types by the format's documents.
  const Row rows[] = {
      {ElementType::f32, "f32", 1, 4},         {ElementType::f16, "f16", 1, 2},
      {ElementType::bf16, "bf16", 1, 2},       {ElementType::f64, "f64", 1, 8},
      {ElementType::i8, "i8", 1, 1},           {ElementType::i16, "i16", 1, 2},
      {ElementType::i32, "i32", 1, 4},         {ElementType::i64, "i64", 1, 8},
      {ElementType::u8, "u8", 1, 1},           {ElementType::boolean, "boolean", 1, 1},
      {ElementType::q8_0, "q8_0", 32, 34},     {ElementType::q4_0, "q4_0", 32, 18},
      {ElementType::q4_1, "q4_1", 32, 20},     {ElementType::q6_k, "q6_k", 256, 210},
      {ElementType::q5_0, "q5_0", 32, 22},     {ElementType::q5_1, "q5_1", 32, 24},
      {ElementType::q2_k, "q2_k", 256, 84},    {ElementType::q3_k, "q3_k", 256, 110},
      {ElementType::q4_k, "q4_k", 256, 144},   {ElementType::q5_k, "q5_k", 256, 176},
      {ElementType::iq4_nl, "iq4_nl", 32, 18}, {ElementType::iq4_xs, "iq4_xs", 256, 136},
      {ElementType::mxfp4, "mxfp4", 32, 17}};
  for (const Row& row : rows) {
    EXPECT_EQ(name_of(row.type), row.name);
    EXPECT_EQ(block_elements(row.type), row.elements) << row.name;
    EXPECT_EQ(block_bytes(row.type), row.bytes) << row.name;
  }
}

TEST(TensorView, CountsItsElements) {
  EXPECT_EQ((TensorView{"scalar", ElementType::f32, {}, {}}.n_elements()), 1);
  EXPECT_EQ((TensorView{"empty", ElementType::f32, {3, 0, 5}, {}}.n_elements()), 0);
  EXPECT_EQ((TensorView{"cube", ElementType::f32, {2, 3, 5}, {}}.n_elements()), 30);
}

TEST(DecodeRows, PlainFloats) {
  Bytes f32, f16, bf16;
  for (const float value : {1.5f, -2.0f, 0.25f, 1e-20f, 3.0f, -0.0f}) append(f32, value);
  for (const std::uint16_t bits : {0x3e00, 0xc000, 0x0001, 0x7bff}) append(f16, bits);
  for (const std::uint16_t bits : {0x3fc0, 0xc000, 0x3e80, 0x4040}) append(bf16, bits);
  EXPECT_THAT(Unaligned(ElementType::f32, {3, 2}, f32).rows(0, 3),
              ElementsAre(1.5f, -2.0f, 0.25f, 1e-20f, 3.0f, -0.0f));
  EXPECT_THAT(Unaligned(ElementType::f32, {3, 2}, f32).rows(1, 1), ElementsAre(0.25f, 1e-20f));
  EXPECT_THAT(Unaligned(ElementType::f16, {2, 2}, f16).rows(0, 2),
              ElementsAre(1.5f, -2.0f, 0x1p-24f, 65504.0f));
  EXPECT_THAT(Unaligned(ElementType::bf16, {2, 2}, bf16).rows(1, 1), ElementsAre(0.25f, 3.0f));
}

TEST(DecodeRows, Q8) {
  // element i = scale * code i, codes from -128 to 127; two rows of two blocks
  Bytes data;
  std::vector<float> want;
  for (int block = 0; block < 4; ++block) {
    const float scale = 0.125f * static_cast<float>(block + 1);  // exact in f16
    append(data, to_f16(scale).bits);
    for (int i = 0; i < 32; ++i) {
      const int code = i == 0 ? -128 : i == 1 ? 127 : code_at(i + block, 256) - 128;
      append(data, static_cast<std::int8_t>(code));
      want.push_back(scale * static_cast<float>(code));
    }
  }
  const Unaligned tensor(ElementType::q8_0, {2, 64}, data);
  EXPECT_EQ(tensor.rows(0, 2), want);
  EXPECT_EQ(tensor.rows(1, 1), std::vector<float>(want.begin() + 64, want.end()));
}

// Both 4-bit types keep element i in the low half and i + 16 in the high half of byte i.
Bytes four_bit_codes(const std::array<int, 32>& codes) {
  Bytes bytes;
  for (std::size_t i = 0; i < 16; ++i) {
    append(bytes, static_cast<std::uint8_t>(codes[i] + 16 * codes[i + 16]));
  }
  return bytes;
}

TEST(DecodeRows, Q40) {
  // element i = scale * (code i - 8)
  Bytes data;
  std::vector<float> want;
  for (int block = 0; block < 2; ++block) {
    const float scale = block == 0 ? 0.5f : -1.75f;
    std::array<int, 32> codes;
    for (int i = 0; i < 32; ++i) codes[static_cast<std::size_t>(i)] = code_at(i + block, 16);
    append(data, to_f16(scale).bits);
    const Bytes packed = four_bit_codes(codes);
    data.insert(data.end(), packed.begin(), packed.end());
    for (const int code : codes) want.push_back(scale * static_cast<float>(code - 8));
  }
  EXPECT_EQ(Unaligned(ElementType::q4_0, {2, 32}, data).rows(0, 2), want);
}

TEST(DecodeRows, Q41) {
  // element i = scale * code i + minimum
  Bytes data;
  std::vector<float> want;
  for (int block = 0; block < 2; ++block) {
    const float scale = block == 0 ? 0.5f : 0.1875f;
    const float minimum = block == 0 ? -3.0f : 40.0f;
    std::array<int, 32> codes;
    for (int i = 0; i < 32; ++i) codes[static_cast<std::size_t>(i)] = code_at(i + block, 16);
    append(data, to_f16(scale).bits);
    append(data, to_f16(minimum).bits);
    const Bytes packed = four_bit_codes(codes);
    data.insert(data.end(), packed.begin(), packed.end());
    for (const int code : codes) want.push_back(scale * static_cast<float>(code) + minimum);
  }
  EXPECT_EQ(Unaligned(ElementType::q4_1, {2, 32}, data).rows(0, 2), want);
}

// q6_k's layout: element e is in half e / 128. Within the half, let l = e % 32 and k = (e % 128) /
// 32. The low four bits are in low byte 64 * half + l + 32 * (k odd), in its low half for k < 2 and
// its high half otherwise. The high two bits are bits 2k, 2k + 1 of high byte 32 * half + l. The 16
// elements from 16 g on share the signed scale g. Element = scale * scale_g * (code - 32).
TEST(DecodeRows, Q6K) {
  Bytes data;
  std::vector<float> want;
  for (int block = 0; block < 2; ++block) {
    std::array<std::uint8_t, 128> low{};
    std::array<std::uint8_t, 64> high{};
    std::array<std::int8_t, 16> group_scales{};
    const float scale = block == 0 ? 0x1.8p-6f : -0x1p-9f;
    for (std::size_t g = 0; g < 16; ++g) {
      group_scales[g] = static_cast<std::int8_t>(g == 3 ? -128 : 127 - 15 * static_cast<int>(g));
    }
    for (int e = 0; e < 256; ++e) {
      const int code = code_at(e + block + e / 64, 64);
      const int half = e / 128;
      const int k = e % 128 / 32;
      const int l = e % 32;
      const auto low_at = static_cast<std::size_t>(64 * half + l + (k % 2 == 1 ? 32 : 0));
      const auto high_at = static_cast<std::size_t>(32 * half + l);
      low[low_at] = static_cast<std::uint8_t>(low[low_at] + (code % 16) * (k < 2 ? 1 : 16));
      const int weight[] = {1, 4, 16, 64};
      high[high_at] = static_cast<std::uint8_t>(high[high_at] + code / 16 * weight[k]);
      // At most 11 + 8 + 6 significant bits: the double is exact and rounds once.
      want.push_back(static_cast<float>(
          double{scale} * group_scales[static_cast<std::size_t>(e / 16)] * (code - 32)));
    }
    for (const std::uint8_t byte : low) append(data, byte);
    for (const std::uint8_t byte : high) append(data, byte);
    for (const std::int8_t byte : group_scales) append(data, byte);
    append(data, to_f16(scale).bits);
  }
  ASSERT_EQ(data.size(), 420u);
  const Unaligned tensor(ElementType::q6_k, {2, 256}, data);
  EXPECT_EQ(tensor.rows(0, 2), want);
  EXPECT_EQ(tensor.rows(1, 1), std::vector<float>(want.begin() + 256, want.end()));
}

TEST(DecodeRows, ScalarsAreOneRow) {
  Bytes data;
  append(data, 7.0f);
  TensorView view{"scale", ElementType::f32, {}, data};
  float out = 0;
  decode_rows(view, 0, 1, {&out, 1});
  EXPECT_EQ(out, 7.0f);
}

TEST(DecodeRows, EmptyTensorsAndRanges) {
  decode_rows({"none", ElementType::f32, {5, 0}, {}}, 0, 5, {});
  decode_rows({"none", ElementType::f16, {0, 5}, {}}, 0, 0, {});
  Bytes data;
  append(data, 1.0f);
  decode_rows({"one", ElementType::f32, {1, 1}, data}, 1, 0, {});
}

TEST(DecodeRows, RefusesWhatIsNotThere) {
  const Unaligned tensor(ElementType::f32, {2, 3}, Bytes(24));
  std::vector<float> out(3);
  const auto message = [](const char* text) { return ThrowsMessage<Error>(HasSubstr(text)); };
  EXPECT_THAT([&] { decode_rows(tensor.view, 2, 1, out); },
              message("[decode rows] weights: expected rows within 0..2, got 1 rows from 2"));
  EXPECT_THAT([&] { decode_rows(tensor.view, -1, 1, out); }, message("1 rows from -1"));
  EXPECT_THAT([&] { decode_rows(tensor.view, 0, -1, out); }, message("-1 rows from 0"));
  EXPECT_THAT([&] { decode_rows(tensor.view, 1, INT64_MAX, out); }, message("rows within 0..2"));
  EXPECT_THAT([&] { decode_rows(tensor.view, 0, 2, out); },
              message("expected room for 6 floats, got 3"));
  EXPECT_THAT(
      [&] {
        decode_rows({"ids", ElementType::i32, {2, 3}, Bytes(24)}, 0, 1, out);
      },
      message("ids: expected a float type, got i32"));
  EXPECT_THAT(
      [&] {
        decode_rows({"cut", ElementType::f32, {2, 3}, Bytes(23)}, 0, 1, out);
      },
      message("23 bytes of f32 for 2 rows of 3"));
  out.resize(31);
  EXPECT_THAT(
      [&] {
        decode_rows({"odd", ElementType::q8_0, {1, 31}, Bytes(34)}, 0, 1, out);
      },
      message("34 bytes of q8_0 for 1 rows of 31"));
}

}  // namespace
}  // namespace outrider
