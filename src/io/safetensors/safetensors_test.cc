// SPDX-License-Identifier: Apache-2.0
#include "io/safetensors/safetensors.h"

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
using test::safetensors;
using test::to_bytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Safetensors, ReadsTensorsInTheOrderOfTheirData) {
  Bytes data;
  for (int i = 0; i < 6; ++i) append(data, static_cast<float>(i));
  for (const int i : {10, 20}) append(data, std::int64_t{i});
  const Bytes file =
      safetensors(R"({"__metadata__":{"format":"pt"},)"
                  R"("ids":{"dtype":"I64","shape":[2],"data_offsets":[24,40]},)"
                  R"("empty":{"data_offsets":[24,24],"shape":[3,0],"dtype":"BF16"},)"
                  R"("a \"quoted\" name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}   )",
                  data);
  const auto source = parse_safetensors(file, "small file");
  ASSERT_EQ(source->tensors().size(), 3u);
  EXPECT_EQ(source->description(), "small file");
  const TensorView& matrix = source->tensors()[0];
  EXPECT_EQ(matrix.name, "a \"quoted\" name");
  EXPECT_EQ(matrix.type, ElementType::f32);
  EXPECT_THAT(matrix.shape, ElementsAre(2, 3));
  EXPECT_EQ(matrix.data.data(), file.data() + file.size() - 40);
  EXPECT_EQ(matrix.data.size(), 24u);
  std::vector<float> row(3);
  decode_rows(matrix, 1, 1, row);
  EXPECT_THAT(row, ElementsAre(3, 4, 5));
  EXPECT_EQ(source->find("empty")->data.size(), 0u);
  EXPECT_EQ(source->find("ids")->type, ElementType::i64);
  EXPECT_EQ(source->find("ids"), &source->tensors()[2]);
  EXPECT_EQ(source->find("idz"), nullptr);
  EXPECT_EQ(source->find(""), nullptr);
}

TEST(Safetensors, ReadsScalarsAndFilesWithoutTensors) {
  const Bytes scalar =
      safetensors(R"({"s":{"dtype":"F16","shape":[],"data_offsets":[0,2]}})", Bytes(2));
  EXPECT_EQ(parse_safetensors(scalar, "scalar")->find("s")->n_elements(), 1);
  EXPECT_TRUE(parse_safetensors(safetensors("{}", {}), "none")->tensors().empty());
}

TEST(Safetensors, KnowsEveryType) {
  const std::vector<std::pair<std::string, ElementType>> types = {
      {"F32", ElementType::f32},     {"F16", ElementType::f16}, {"BF16", ElementType::bf16},
      {"F64", ElementType::f64},     {"I8", ElementType::i8},   {"I16", ElementType::i16},
      {"I32", ElementType::i32},     {"I64", ElementType::i64}, {"U8", ElementType::u8},
      {"BOOL", ElementType::boolean}};
  for (const auto& pair : types) {
    const std::size_t n_bytes = 3 * block_bytes(pair.second);
    const Bytes file =
        safetensors(R"({"t":{"dtype":")" + pair.first + R"(","shape":[3],"data_offsets":[0,)" +
                        std::to_string(n_bytes) + "]}}",
                    Bytes(n_bytes));
    EXPECT_EQ(parse_safetensors(file, pair.first)->find("t")->type, pair.second);
  }
}

// Tensors of unreadable types do not prevent reading the others.
TEST(Safetensors, HoldsForeignTypesByTheirNames) {
  for (const std::string type : {"F8_E4M3", "F4", "C64", "of the future"}) {
    const Bytes file = safetensors(R"({"t":{"dtype":")" + type +
                                       R"(","shape":[3,5],"data_offsets":[0,7]},)"
                                       R"("u":{"dtype":"U8","shape":[2],"data_offsets":[7,9]}})",
                                   Bytes(9));
    const auto source = parse_safetensors(file, "foreign");
    const TensorView& tensor = *source->find("t");
    EXPECT_EQ(tensor.type, ElementType::foreign);
    EXPECT_EQ(tensor.type_name(), type);
    EXPECT_EQ(tensor.data.size(), 7u);
    std::vector<float> row(5);
    EXPECT_THROW(decode_rows(tensor, 0, 1, row), Error);
    EXPECT_EQ(source->find("u")->type_name(), "u8");
  }
}

// A good file is refused wherever it is cut.
TEST(Safetensors, RefusesEveryTruncation) {
  const Bytes file = safetensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                                 R"("b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})",
                                 Bytes(11));
  parse_safetensors(file, "whole");
  for (std::size_t n = 0; n < file.size(); ++n) {
    // A separate copy, so that a sanitizer reports reads beyond the cut.
    const Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_THROW(parse_safetensors(cut, "cut"), Error) << n << " bytes";
  }
}

struct BadFile {
  std::string why;
  Bytes bytes;
  std::string message;  // a part of it
};

void PrintTo(const BadFile& bad, std::ostream* out) { *out << bad.why; }

Bytes one_tensor(const std::string& fields, std::size_t n_data) {
  return safetensors(R"({"t":{)" + fields + "}}", Bytes(n_data));
}

Bytes with_length(std::uint64_t length, std::string_view header) {
  Bytes file;
  append(file, length);
  append(file, header);
  return file;
}

std::vector<BadFile> bad_files() {
  const std::string deep(200'000, '[');
  const std::string dtype = R"("dtype":"F32",)";
  std::string many_sizes = "1";
  for (int i = 0; i < 64; ++i) many_sizes += ",1";
  return {
      {"empty", {}, "expected 8 bytes of header length, got a file of 0 bytes"},
      {"short", Bytes(7), "got a file of 7 bytes"},
      {"length beyond file", with_length(3, "{}"),
       "a header of at most 2 bytes, got header length 3"},
      {"absurd length", with_length(UINT64_MAX, "{}"), "header length 18446744073709551615"},
      {"empty header", with_length(0, ""), "begins with '{', got an empty one"},
      {"an array", safetensors("[]", {}), "begins with '{', got '['"},
      {"leading blank", safetensors(" {}", {}), "begins with '{', got ' '"},
      {"byte order mark", safetensors("\xef\xbb\xbf{}", {}), "begins with '{'"},
      {"no JSON", safetensors("{]", {}), "expected JSON text, got a syntax error at byte 2"},
      {"unfinished", safetensors("{", {}), "got a syntax error"},
      {"two objects", safetensors("{}{}", {}), "got a syntax error at byte 3"},
      {"zero byte", safetensors(std::string_view("{}\0,", 4), {}), "got a zero byte at 2"},
      {"bad UTF-8", safetensors("{\"\xff\":1}", {}), "got a syntax error"},
      {"deep", safetensors(R"({"t":)" + deep, {}),
       "tensor 't': expected an object that describes it, got an array"},
      {"deep in shape", one_tensor(R"("shape":)" + deep, 0),
       "tensor 't': expected shape as at most 64 integers"},
      {"deep in metadata", safetensors(R"({"__metadata__":{"k":)" + deep, {}),
       "__metadata__: expected texts only, got an array"},
      {"number in metadata", safetensors(R"({"__metadata__":{"k":1}})", {}),
       "expected texts only, got 1"},
      {"metadata twice", safetensors(R"({"__metadata__":{},"__metadata__":{}})", {}),
       "expected names to be unique, got a duplicate"},
      {"tensor is null", safetensors(R"({"t":null})", {}), "an object that describes it, got null"},
      {"unknown field", one_tensor(R"("offset":1)", 0),
       "expected dtype, shape and data_offsets, each once, got key 'offset'"},
      {"no dtype", one_tensor(R"("shape":[1],"data_offsets":[0,4])", 4), "each once, got no dtype"},
      {"no shape", one_tensor(dtype + R"("data_offsets":[0,4])", 4), "got no shape"},
      {"no offsets", one_tensor(dtype + R"("shape":[1])", 4), "got no data_offsets"},
      {"dtype twice", one_tensor(dtype + dtype + R"("shape":[1])", 4), "got 'dtype' twice"},
      {"dtype of a number", one_tensor(R"("dtype":4)", 4), "a dtype as a text, got 4"},
      {"shape of a number", one_tensor(dtype + R"("shape":1)", 4), "expected shape as"},
      {"negative size", one_tensor(dtype + R"("shape":[-1])", 4),
       "integers from 0 to 2^63 - 1, got -1"},
      {"size beyond int64", one_tensor(dtype + R"("shape":[9223372036854775808])", 4),
       "got 9223372036854775808"},
      {"size beyond uint64", one_tensor(dtype + R"("shape":[18446744073709551616])", 4),
       "got 18446744073709551616"},
      {"fractional size", one_tensor(dtype + R"("shape":[1.5])", 4), "got 1.5"},
      {"size in a text", one_tensor(dtype + R"("shape":["1"])", 4), "got '1'"},
      {"65 dimensions", one_tensor(dtype + R"("shape":[)" + many_sizes + "]", 4),
       "at most 64 integers"},
      {"overflowing shape",
       one_tensor(dtype + R"("shape":[4294967296,4294967296],"data_offsets":[0,0])", 0),
       "expected a shape whose size fits 63 bits, got [4294967296, 4294967296] of f32"},
      {"overflow hidden by a zero",
       one_tensor(dtype + R"("shape":[4294967296,4294967296,0],"data_offsets":[0,0])", 0),
       "a shape whose size fits 63 bits"},
      {"overflowing bytes",
       one_tensor(R"("dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0])", 0),
       "a shape whose size fits 63 bits, got [2305843009213693952] of f64"},
      {"one offset", one_tensor(dtype + R"("shape":[1],"data_offsets":[0])", 4),
       "data_offsets as two integers from 0 to 2^64 - 1, got fewer"},
      {"three offsets", one_tensor(dtype + R"("shape":[1],"data_offsets":[0,4,5])", 4),
       "data_offsets as two integers from 0 to 2^64 - 1, got 5"},
      {"negative offset", one_tensor(dtype + R"("shape":[1],"data_offsets":[-4,0])", 4), "got -4"},
      {"offsets reversed", one_tensor(dtype + R"("shape":[1],"data_offsets":[4,0])", 4),
       "expected offsets in order, got bytes 4 to 0"},
      {"offsets outside", one_tensor(dtype + R"("shape":[1],"data_offsets":[0,4])", 3),
       "offsets within 3 bytes of data, got bytes 0 to 4"},
      {"too few bytes", one_tensor(dtype + R"("shape":[2],"data_offsets":[0,4])", 4),
       "expected 8 bytes for f32 [2], got 4 (bytes 0 to 4)"},
      {"too many bytes", one_tensor(dtype + R"("shape":[],"data_offsets":[0,8])", 8),
       "expected 4 bytes for f32 [], got 8"},
      {"hole at the start", one_tensor(dtype + R"("shape":[1],"data_offsets":[4,8])", 8),
       "begin at byte 0, where the tensor before ends, got bytes 4 to 8 (a hole between tensors)"},
      {"data behind the last", one_tensor(dtype + R"("shape":[1],"data_offsets":[0,4])", 5),
       "expected 4 bytes of data, got 5"},
      {"overlap",
       safetensors(
           R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
           Bytes(6)),
       "tensor 'b': expected its data to begin at byte 4, where the tensor before ends, got bytes "
       "2 to 6 (an overlap)"},
      {"tensor twice",
       safetensors(
           R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
           Bytes(2)),
       "tensor 'a': expected names to be unique, got a duplicate"},
      {"twice by an escape",
       safetensors(
           R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"\u0061":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
           Bytes(2)),
       "got a duplicate"},
  };
}

class BadSafetensors : public ::testing::TestWithParam<BadFile> {};

TEST_P(BadSafetensors, IsOneClearError) {
  try {
    parse_safetensors(GetParam().bytes, "bad.safetensors");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), StartsWith("[read safetensors] bad.safetensors"));
    EXPECT_THAT(error.what(), HasSubstr(GetParam().message));
    EXPECT_THAT(error.what(), ::testing::Not(HasSubstr("\n")));
  }
}

INSTANTIATE_TEST_SUITE_P(Files, BadSafetensors, ::testing::ValuesIn(bad_files()));

}  // namespace
}  // namespace outrider
