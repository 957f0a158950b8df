// SPDX-License-Identifier: Apache-2.0
#include "io/gguf/gguf_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "io/gguf/gguf.h"
#include "io/test_files.h"
#include "outrider/error.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using test::Bytes;
using test::Gguf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  return test::to_bytes(text);
}

Bytes counted(std::size_t n) {
  Bytes bytes(n);
  for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i + 1);
  return bytes;
}

class GgufWriting : public ::testing::Test {
 protected:
  std::filesystem::path path() const { return directory_.path() / "model.gguf"; }
  bool is_clean() const { return std::filesystem::is_empty(directory_.path()); }
  test::TemporaryDirectory directory_;
};

// An entry of each kind, including a number too large for int64 and a NaN with a payload: values
// that the reader widens are copied unchanged.
TEST_F(GgufWriting, WritesTheBytesOfAnotherWriter) {
  for (const std::uint64_t alignment : {32U, 8U, 128U}) {
    Gguf made;
    made.alignment = alignment;
    if (alignment != 32) {
      made.value("general.alignment", test::kU32, static_cast<std::uint32_t>(alignment));
    }
    made.value("u8", test::kU8, std::uint8_t{200})
        .value("i16", test::kI16, std::int16_t{-30000})
        .value("nan", test::kU32, std::uint32_t{0x7fc12345})
        .raw("f32 nan", test::kF32,
             Bytes{std::byte{1}, std::byte{2}, std::byte{0xc0}, std::byte{0x7f}})
        .value("large", test::kU64, std::uint64_t{1} << 63)
        .value("bool", test::kBool, std::uint8_t{1})
        .text("text", "a value")
        .texts("texts", {"x", "", "yz"})
        .array<std::uint64_t>("larges", test::kU64, {1, UINT64_MAX})
        .array<float>("f32s", test::kF32, {0.1F, -1.0F});
    made.tensor("matrix", {3, 2}, 0, counted(24))
        .tensor("blocks", {64, 1, 2}, 8, counted(2 * 2 * 34))
        .tensor("byte", {1}, 24, counted(1));
    Bytes expected = made.bytes();
    while (expected.size() % alignment != 0) expected.push_back(std::byte{0});

    const auto source = parse_gguf(expected, "made");
    ASSERT_EQ(source->entries().size(), source->metadata().size());
    std::vector<GgufTensor> tensors;
    for (const TensorView& view : source->tensors()) {
      tensors.push_back({view.name, view.type, view.shape});
      EXPECT_EQ(tensors.back().n_bytes(), view.data.size());
    }
    GgufWriter writer(path(), source->entries(), tensors, alignment);
    for (const TensorView& view : source->tensors()) {
      writer.write({});
      writer.write(view.data.first(1));
      writer.write(view.data.subspan(1));
    }
    EXPECT_FALSE(std::filesystem::exists(path()));
    writer.commit();
    EXPECT_EQ(read_file(path()), expected) << alignment;
    EXPECT_EQ(writer.n_bytes(), expected.size());
    std::filesystem::remove(path());
  }
}

TEST_F(GgufWriting, MakesEntries) {
  Gguf made;
  made.value("general.file_type", test::kU32, std::uint32_t{15});
  const Bytes bytes = made.bytes();
  const Bytes entry = test::to_bytes(gguf_entry("general.file_type", 15));
  EXPECT_TRUE(std::equal(entry.begin(), entry.end(), bytes.end() - std::ssize(entry)));
  EXPECT_EQ(bytes.size(), 24 + entry.size());
}

TEST_F(GgufWriting, NeedsAllBytesOfEachTensorAndNoMore) {
  const std::vector<GgufTensor> tensors = {{"a", ElementType::f32, {2, 3}},
                                           {"b", ElementType::q8_0, {32}}};
  const Bytes bytes = counted(64);
  {
    GgufWriter writer(path(), {}, tensors, 32);
    EXPECT_THAT([&] { writer.write(std::span(bytes).first(25)); },
                ThrowsMessage<Error>(HasSubstr("at most 24 bytes more, got 25")));
    writer.write(std::span(bytes).first(24));
    writer.write(std::span(bytes).first(30));
    EXPECT_THAT(
        [&] { writer.commit(); },
        ThrowsMessage<Error>(HasSubstr("[write GGUF] b: expected all of its bytes, got 4")));
  }
  EXPECT_TRUE(is_clean());
  GgufWriter writer(path(), {}, tensors, 32);
  writer.write(std::span(bytes).first(24));
  writer.write(std::span(bytes).first(34));
  EXPECT_THROW(writer.write(std::span(bytes).first(1)), Error);
  writer.commit();
  EXPECT_EQ(parse_gguf(read_file(path()), "made")->tensors().size(), 2U);
}

TEST_F(GgufWriting, RefusesTensorsThatAreNone) {
  const std::pair<GgufTensor, std::string> cases[] = {
      {{"t", ElementType::foreign, {2}}, "[write GGUF] t: expected a type that GGUF has"},
      {{"t", ElementType::boolean, {2}}, "a type that GGUF has, got boolean"},
      {{"t", ElementType::f32, {}}, "expected 1 to 4 sizes"},
      {{"t", ElementType::f32, {1, 1, 1, 1, 1}}, "expected 1 to 4 sizes"},
      {{"t", ElementType::f32, {3, 0}}, "got [3, 0]"},
      {{"t", ElementType::f32, {-1}}, "got [-1]"},
      {{"t", ElementType::q4_k, {2, 128}}, "rows of whole q4_k blocks, got [2, 128]"},
      {{"t", ElementType::f32, {std::int64_t{1} << 40, std::int64_t{1} << 40}}, "expected 1 to 4"},
  };
  for (const auto& [tensor, message] : cases) {
    const std::vector<GgufTensor> tensors = {tensor};
    EXPECT_THAT([&] { GgufWriter(path(), {}, tensors, 32); },
                ThrowsMessage<Error>(HasSubstr(message)));
    EXPECT_TRUE(is_clean());
  }
}

}  // namespace
}  // namespace outrider
