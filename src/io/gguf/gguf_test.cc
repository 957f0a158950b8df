// SPDX-License-Identifier: Apache-2.0
#include "io/gguf/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "io/test_files.h"
#include "outrider/error.h"

namespace outrider {
namespace {

using test::append;
using test::Bytes;
using test::Gguf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

// Each value type once, and two tensors.
Gguf good_file() {
  Gguf file;
  file.value("u8", test::kU8, std::uint8_t{200})
      .value("i8", test::kI8, std::int8_t{-100})
      .value("u16", test::kU16, std::uint16_t{60000})
      .value("i16", test::kI16, std::int16_t{-30000})
      .value("u32", test::kU32, std::uint32_t{4000000000})
      .value("i32", test::kI32, std::int32_t{-2000000000})
      .value("f32", test::kF32, 0.5f)
      .value("bool", test::kBool, std::uint8_t{1})
      .text("text", "a value")
      .value("u64", test::kU64, std::uint64_t{INT64_MAX})
      .value("large", test::kU64, std::uint64_t{1} << 63)
      .value("i64", test::kI64, INT64_MIN)
      .value("f64", test::kF64, 0.1)
      .texts("texts", {"x", "", "yz"})
      .array<std::int8_t>("i8s", test::kI8, {-1, 2})
      .array<std::uint64_t>("u64s", test::kU64, {1, 2})
      .array<std::uint64_t>("larges", test::kU64, {1, UINT64_MAX})
      .array<float>("f32s", test::kF32, {0.25f, -1.0f})
      .array<std::uint8_t>("bools", test::kBool, {1, 0, 1})
      .texts("none", {});
  Bytes floats;
  for (int i = 0; i < 6; ++i) append(floats, static_cast<float>(i));
  Bytes block(34);
  block[1] = std::byte{0x3c};  // scale 1
  block[2] = std::byte{5};
  return file.tensor("matrix", {3, 2}, 0, floats).tensor("quantised", {32, 1, 1}, 8, block);
}

TEST(Gguf, ReadsTensorsWithShapesOutermostFirst) {
  for (const std::uint32_t version : {2u, 3u}) {
    Gguf writer = good_file();
    writer.version = version;
    const Bytes bytes = writer.bytes();
    const auto file = parse_gguf(bytes, "small file");
    ASSERT_EQ(file->tensors().size(), 2u);
    EXPECT_EQ(file->description(), "small file");
    const TensorView& matrix = file->tensors()[0];
    EXPECT_EQ(file->find("matrix"), &matrix);
    EXPECT_EQ(file->find("nothing"), nullptr);
    EXPECT_EQ(matrix.type, ElementType::f32);
    EXPECT_THAT(matrix.shape, ElementsAre(2, 3));
    EXPECT_EQ(matrix.data.size(), 24u);
    std::vector<float> row(3);
    decode_rows(matrix, 1, 1, row);
    EXPECT_THAT(row, ElementsAre(3, 4, 5));
    const TensorView* quantised = file->find("quantised");
    EXPECT_THAT(quantised->shape, ElementsAre(1, 1, 32));
    std::vector<float> values(32);
    decode_rows(*quantised, 0, 1, values);
    EXPECT_EQ(values[0], 5.0f);
    EXPECT_EQ(values[1], 0.0f);
  }
}

TEST(Gguf, KnowsEveryTypeItCanHold) {
  const std::vector<std::pair<std::uint32_t, ElementType>> types = {
      {0, ElementType::f32},     {1, ElementType::f16},     {2, ElementType::q4_0},
      {3, ElementType::q4_1},    {6, ElementType::q5_0},    {7, ElementType::q5_1},
      {8, ElementType::q8_0},    {10, ElementType::q2_k},   {11, ElementType::q3_k},
      {12, ElementType::q4_k},   {13, ElementType::q5_k},   {14, ElementType::q6_k},
      {20, ElementType::iq4_nl}, {23, ElementType::iq4_xs}, {39, ElementType::mxfp4},
      {24, ElementType::i8},     {25, ElementType::i16},    {26, ElementType::i32},
      {27, ElementType::i64},    {28, ElementType::f64},    {30, ElementType::bf16}};
  for (const auto& pair : types) {
    const Bytes bytes =
        Gguf()
            .tensor("t", {block_elements(pair.second)}, pair.first, Bytes(block_bytes(pair.second)))
            .bytes();
    EXPECT_EQ(parse_gguf(bytes, "types")->find("t")->type, pair.second);
  }
}

// A file may hold unused tensors of types that this build does not know.
TEST(Gguf, HoldsForeignTypesByTheirNames) {
  const std::pair<std::uint32_t, const char*> types[] = {
      {21, "iq3_s"}, {40, "nvfp4"}, {4, "type number 4"}, {99, "type number 99"}};
  for (const auto& [number, name] : types) {
    const Bytes bytes =
        Gguf().tensor("t", {3}, number, Bytes(110)).tensor("u", {1}, 0, Bytes(4)).bytes();
    const auto file = parse_gguf(bytes, "foreign");
    const TensorView& tensor = *file->find("t");
    EXPECT_EQ(tensor.type, ElementType::foreign);
    EXPECT_EQ(tensor.type_name(), name);
    EXPECT_EQ(tensor.data.size(), 128u);  // up to the next tensor
    std::vector<float> row(3);
    EXPECT_THROW(decode_rows(tensor, 0, 1, row), Error);
    EXPECT_EQ(file->find("u")->type_name(), "f32");
  }
}

TEST(Gguf, MetadataByType) {
  const Bytes bytes = good_file().bytes();
  const auto file = parse_gguf(bytes, "small file");
  EXPECT_EQ(file->metadata().size(), 20u);
  EXPECT_EQ(file->metadata()[8].first, "text");
  EXPECT_EQ(file->integer("u8"), 200);
  EXPECT_EQ(file->integer("i8"), -100);
  EXPECT_EQ(file->integer("u16"), 60000);
  EXPECT_EQ(file->integer("i16"), -30000);
  EXPECT_EQ(file->integer("u32"), 4000000000);
  EXPECT_EQ(file->integer("i32"), -2000000000);
  EXPECT_EQ(file->integer("u64"), INT64_MAX);
  EXPECT_EQ(file->integer("i64"), INT64_MIN);
  EXPECT_EQ(file->real("f32"), 0.5);
  EXPECT_EQ(file->real("f64"), 0.1);
  EXPECT_EQ(file->real("u8"), 200.0);
  EXPECT_EQ(file->real("large"), 0x1p63);
  EXPECT_EQ(file->boolean("bool"), true);
  EXPECT_EQ(*file->string("text"), "a value");
  EXPECT_THAT(*file->strings("texts"), ElementsAre("x", "", "yz"));
  EXPECT_THAT(*file->strings("none"), ElementsAre());
  EXPECT_THAT(*file->integers("i8s"), ElementsAre(-1, 2));
  EXPECT_THAT(*file->integers("u64s"), ElementsAre(1, 2));
  EXPECT_THAT(*file->reals("f32s"), ElementsAre(0.25, -1.0));
  EXPECT_THAT(*file->reals("larges"), ElementsAre(1.0, 0x1p64));
  EXPECT_THAT(std::get<std::vector<bool>>(*file->find_metadata("bools")),
              ElementsAre(true, false, true));
}

TEST(Gguf, AbsentKeysAreNoErrorButWrongTypesAre) {
  const Bytes bytes = good_file().bytes();
  const auto file = parse_gguf(bytes, "small file");
  EXPECT_EQ(file->integer("x"), std::nullopt);
  EXPECT_EQ(file->real("x"), std::nullopt);
  EXPECT_EQ(file->boolean("x"), std::nullopt);
  EXPECT_EQ(file->string("x"), nullptr);
  EXPECT_EQ(file->strings("x"), nullptr);
  EXPECT_EQ(file->integers("x"), nullptr);
  EXPECT_EQ(file->reals("x"), nullptr);
  EXPECT_EQ(file->find_metadata("x"), nullptr);
  const auto fails = [](const char* text) { return ThrowsMessage<Error>(HasSubstr(text)); };
  EXPECT_THAT([&] { file->integer("text"); },
              fails("[read GGUF metadata] small file: key 'text': expected an integer below 2^63, "
                    "got a text"));
  EXPECT_THAT([&] { file->integer("large"); }, fails("got the number 9.22337203685477"));
  EXPECT_THAT([&] { file->integer("bool"); }, fails("got the boolean true"));
  EXPECT_THAT([&] { file->real("texts"); }, fails("expected a number, got texts"));
  EXPECT_THAT([&] { file->boolean("u8"); }, fails("expected a boolean, got the integer 200"));
  EXPECT_THAT([&] { file->string("i8s"); }, fails("expected a text, got integers"));
  EXPECT_THAT([&] { file->strings("f32s"); }, fails("expected an array of texts, got numbers"));
  EXPECT_THAT([&] { file->integers("bools"); }, fails("got booleans"));
  EXPECT_THAT([&] { file->integers("larges"); }, fails("an array of integers below 2^63"));
  EXPECT_THAT([&] { file->reals("f32"); }, fails("expected an array of numbers, got the number"));
}

TEST(Gguf, VocabularyOnlyFilesAndOtherAlignments) {
  EXPECT_TRUE(parse_gguf(Gguf().bytes(), "none")->tensors().empty());
  EXPECT_TRUE(parse_gguf(Gguf().text("k", "v").bytes(), "none")->tensors().empty());
  Gguf aligned;
  aligned.alignment = 256;
  aligned.value("general.alignment", test::kU32, std::uint32_t{256});
  const Bytes bytes = aligned.tensor("a", {1}, 24, Bytes(1)).tensor("b", {2}, 24, Bytes(2)).bytes();
  const auto file = parse_gguf(bytes, "aligned");
  EXPECT_EQ(file->find("b")->data.data(), bytes.data() + bytes.size() - 2);
}

TEST(Gguf, RefusesEveryTruncation) {
  const Bytes bytes = good_file().bytes();
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    // A separate copy, so that a sanitizer reports reads beyond the cut.
    const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_THROW(parse_gguf(cut, "cut"), Error) << n << " bytes";
  }
}

struct BadFile {
  std::string why;
  Bytes bytes;
  std::string message;  // a part of it
};

void PrintTo(const BadFile& bad, std::ostream* out) { *out << bad.why; }

Bytes with_version(std::uint32_t version) {
  Gguf file;
  file.version = version;
  return file.bytes();
}

// A key 'k' with this value type and these bytes.
Bytes with_value(std::uint32_t type, std::initializer_list<std::uint64_t> words) {
  Bytes bytes;
  for (const std::uint64_t word : words) append(bytes, word);
  return Gguf().raw("k", type, bytes).bytes();
}

// An array of `n` elements of this type, of which `n_bytes` are present.
Bytes with_array(std::uint32_t type, std::uint64_t n, std::size_t n_bytes) {
  Bytes bytes;
  append(bytes, type);
  append(bytes, n);
  bytes.resize(bytes.size() + n_bytes);
  return Gguf().raw("k", test::kArray, bytes).bytes();
}

Bytes with_alignment(std::uint32_t alignment) {
  return Gguf().value("general.alignment", test::kU32, alignment).bytes();
}

Bytes text_of_length(std::uint64_t n) {
  Bytes file = Gguf().bytes(0, 1);
  append(file, n);
  file.resize(file.size() + 16);
  return file;
}

Bytes one_tensor(const std::vector<std::uint64_t>& sizes, std::uint32_t type, std::size_t n_data) {
  return Gguf().tensor("t", sizes, type, Bytes(n_data)).bytes();
}

std::vector<BadFile> bad_files() {
  const std::uint64_t huge = std::uint64_t{1} << 62;
  const Bytes four(4);
  std::vector<BadFile> bad = {
      {"empty", {}, "magic: expected 'GGUF', got ''"},
      {"other magic", test::to_bytes("GGML...."), "expected 'GGUF', got 'GGML'"},
      {"short magic", test::to_bytes("GGU"), "expected 'GGUF', got 'GGU'"},
      {"no version", test::to_bytes("GGUF"),
       "version: expected 4 bytes at byte 4, got the end of the file after 0"},
      {"version 1", with_version(1), "expected 2 or 3, little-endian, got 1"},
      {"version 4", with_version(4), "expected 2 or 3, little-endian, got 4"},
      {"version 0", with_version(0), "little-endian, got 0"},
      {"big-endian", with_version(0x03000000), "got 50331648 (a big-endian file)"},
      {"too many tensors", Gguf().bytes(1, 0),
       "number of tensors: expected at most 0 (that many fit the 0 bytes left), got 1"},
      {"absurd tensors", good_file().bytes(UINT64_MAX, 20), "number of tensors: expected at most"},
      {"absurd keys", good_file().bytes(2, UINT64_MAX), "number of keys: expected at most"},
      {"one key more", Gguf().text("k", "v").bytes(0, 2), "number of keys: expected at most 1"},
      {"tensors instead of keys",
       Gguf().text("k", "a text that is long enough for a tensor").bytes(1, 1),
       "number of tensors: expected at most 0"},
      {"key beyond file", text_of_length(17),
       "a key: expected a length of at most 16 bytes, got 17"},
      {"key of absurd length", text_of_length(UINT64_MAX), "got 18446744073709551615"},
      {"key too long", Gguf().text(std::string(65536, 'k'), "").bytes(),
       "a key: expected at most 65535 bytes, got 65536"},
      {"text beyond file", with_value(test::kString, {9, 0}),
       "key 'k': expected a length of at most 8 bytes, got 9"},
      {"text of absurd length", with_value(test::kString, {UINT64_MAX - 7}),
       "key 'k': expected a length of at most 0 bytes"},
      {"value type 13", with_value(13, {0}), "key 'k': expected value type 0 to 12, got 13"},
      {"value type -1", with_value(UINT32_MAX, {0}), "expected value type 0 to 12, got 4294967295"},
      {"value cut", Gguf().raw("k", test::kF64, four).bytes(),
       "key 'k': expected 8 bytes at byte 37, got the end of the file after 4"},
      {"boolean 2", Gguf().value("k", test::kBool, std::uint8_t{2}).bytes(),
       "key 'k': expected a boolean of 0 or 1, got 2"},
      {"array type 13", with_array(13, 0, 0),
       "key 'k': expected an array of value type 0 to 12, got 13"},
      {"array of arrays", with_array(test::kArray, 0, 0),
       "expected an array of plain values, got an array of arrays"},
      {"bytes beyond file", with_array(test::kU8, 9, 8),
       "key 'k': expected at most 8 (that many fit the 8 bytes left), got 9"},
      {"u64s beyond file", with_array(test::kU64, 2, 15),
       "expected at most 1 (that many fit the 15 bytes left), got 2"},
      {"floats whose bytes overflow", with_array(test::kF32, huge, 8),
       "expected at most 2 (that many"},
      {"f64s whose bytes overflow", with_array(test::kF64, huge / 2, 8),
       "expected at most 1 (that many"},
      {"booleans beyond file", with_array(test::kBool, UINT64_MAX, 8),
       "expected at most 8 (that many"},
      {"texts beyond file", with_array(test::kString, 3, 16), "expected at most 2 (that many"},
      {"texts whose bytes overflow", with_array(test::kString, huge / 2, 16),
       "expected at most 2 (that many"},
      {"key twice", Gguf().text("k", "v").text("k", "w").bytes(),
       "key 'k': expected keys to be unique, got a duplicate"},
      {"alignment 0", with_alignment(0),
       "key 'general.alignment': expected a power of two from 8 to 2^31, got 0"},
      {"alignment 24", with_alignment(24), "a power of two from 8 to 2^31, got 24"},
      {"alignment 4", with_alignment(4), "a power of two from 8 to 2^31, got 4"},
      {"alignment is text", Gguf().text("general.alignment", "32").bytes(),
       "a power of two from 8 to 2^31, got another type"},
      {"no dimension", one_tensor({}, 0, 64), "tensor 't': expected 1 to 4 dimensions, got 0"},
      {"five dimensions", one_tensor({1, 1, 1, 1, 1}, 0, 4),
       "tensor 't': expected 1 to 4 dimensions, got 5"},
      {"zero size", one_tensor({4, 0}, 0, 64), "expected dimensions from 1 to 2^63 - 1, got 0"},
      {"negative size", one_tensor({UINT64_MAX}, 0, 64), "got 18446744073709551615"},
      {"overflowing shape", one_tensor({std::uint64_t{1} << 32, std::uint64_t{1} << 31}, 0, 64),
       "expected a shape whose size fits 63 bits, got [2147483648, 4294967296] of f32"},
      {"overflowing bytes", one_tensor({huge}, 0, 64),
       "expected a shape whose size fits 63 bits, got [4611686018427387904] of f32"},
      {"row of 32 in q4_k", one_tensor({32}, 12, 144),
       "expected rows of whole q4_k blocks of 256, got 32 elements"},
      {"row of 31 in q4_0", one_tensor({31}, 2, 18),
       "expected rows of whole q4_0 blocks of 32, got 31 elements"},
      {"row of 128 in q6_k", one_tensor({128, 2}, 14, 210),
       "expected rows of whole q6_k blocks of 256, got 128 elements"},
      {"too few bytes", one_tensor({2}, 0, 7),
       "tensor 't': expected its bytes within 7 bytes of data, got 8 bytes from 0"},
      {"no data", Gguf().claim("t", {1}, 0, 0).bytes(),
       "expected its bytes within 0 bytes of data, got 4 bytes from 0"},
      {"offset outside", Gguf().tensor("s", {1}, 0, four).claim("t", {1}, 0, 64).bytes(),
       "tensor 't': expected its bytes within 4 bytes of data, got 4 bytes from 64"},
      {"offset absurd",
       Gguf().tensor("s", {1}, 0, four).claim("t", {1}, 0, UINT64_MAX - 31).bytes(),
       "got 4 bytes from 18446744073709551584"},
      {"offset unaligned", Gguf().tensor("s", {64}, 24, Bytes(64)).claim("t", {1}, 24, 8).bytes(),
       "tensor 't': expected an offset that is a multiple of 32, got 8"},
      {"overlap", Gguf().tensor("s", {64}, 24, Bytes(64)).claim("t", {32}, 24, 32).bytes(),
       "tensor 't': expected its bytes to begin at 64 or later, after tensor 's', got 32 (an "
       "overlap)"},
      {"the same bytes twice", Gguf().tensor("s", {4}, 24, four).claim("t", {4}, 24, 0).bytes(),
       "tensor 't': expected its bytes to begin at 4 or later, after tensor 's', got 0 (an "
       "overlap)"},
      {"tensor twice", Gguf().tensor("t", {4}, 24, four).tensor("t", {4}, 24, four).bytes(),
       "tensor 't': expected tensor names to be unique, got a duplicate"},
  };
  return bad;
}

class BadGguf : public ::testing::TestWithParam<BadFile> {};

TEST_P(BadGguf, IsOneClearError) {
  try {
    parse_gguf(GetParam().bytes, "bad.gguf");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), StartsWith("[read GGUF] bad.gguf: "));
    EXPECT_THAT(error.what(), HasSubstr(GetParam().message));
    EXPECT_THAT(error.what(), ::testing::Not(HasSubstr("\n")));
  }
}

INSTANTIATE_TEST_SUITE_P(Files, BadGguf, ::testing::ValuesIn(bad_files()));

TEST(OpenGguf, SaysThatThereIsNoFile) {
  EXPECT_THAT([] { open_gguf("no/such/file.gguf"); },
              ThrowsMessage<Error>(HasSubstr(
                  "[open file] no/such/file.gguf: expected a readable file, got No such")));
}

}  // namespace
}  // namespace outrider
