// SPDX-License-Identifier: Apache-2.0
// Files of every type made from tiny models: their contents against the source, byte by byte, and
// refusals.
#include "outrider/quantise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/files/file_type.h"
#include "io/blocks/block_encoder.h"
#include "io/gguf/gguf.h"
#include "io/test_files.h"
#include "outrider/error.h"
#include "outrider/generate.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using test::Bytes;
using test::Gguf;
using test::TinyModel;
using test::TinyShape;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

Bytes read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  return test::to_bytes(text);
}

void write_file(const fs::path& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
}

std::vector<float> values_of(const TensorView& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.n_elements()));
  decode_rows(tensor, 0, tensor.n_elements() / tensor.shape.back(), values);
  return values;
}

// Rows of 256, except for the 96 of ffn_down.
TinyShape wide_shape() {
  TinyShape shape;
  shape.n_layers = 8;
  shape.dim = 256;
  shape.n_heads = 8;
  shape.head_dim = 32;
  return shape;
}

class Quantise : public ::testing::Test {
 protected:
  fs::path source() const { return root() / "source.gguf"; }
  fs::path out() const { return root() / "out.gguf"; }
  const fs::path& root() const { return directory_.path(); }
  void write_source(ElementType type = ElementType::f32) const {
    write_gguf(test::make_tiny_model(wide_shape()), source(), {type, type});
  }
  auto quantising(const QuantiseOptions& options) const {
    return [this, options] { quantise_file(source(), out(), options); };
  }
  // No file beside the source.
  bool is_clean() const {
    return std::distance(fs::directory_iterator(root()), fs::directory_iterator()) == 1;
  }
  test::TemporaryDirectory directory_;
};

TEST_F(Quantise, HoldsEachTensorInItsPlannedType) {
  for (const ElementType stored : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    write_source(stored);
    const auto before = open_gguf(source());
    for (const FileType& type : file_types()) {
      SCOPED_TRACE(type.name);
      const QuantiseSummary summary =
          quantise_file(source(), out(), {.type = std::string(type.name), .replace = true});
      const auto after = open_gguf(out());
      const std::vector<PlannedTensor> planned = plan_tensors(type, *before);
      ASSERT_EQ(after->tensors().size(), planned.size());
      std::uint64_t n_bytes_read = 0;
      for (std::size_t i = 0; i < planned.size(); ++i) {
        const TensorView& from = before->tensors()[i];
        const TensorView& to = after->tensors()[i];
        SCOPED_TRACE(from.name);
        n_bytes_read += from.data.size();
        EXPECT_EQ(to.name, from.name);
        EXPECT_EQ(to.shape, from.shape);
        EXPECT_EQ(to.type, planned[i].type);
        if (to.type == from.type) {
          EXPECT_TRUE(std::equal(from.data.begin(), from.data.end(), to.data.begin()));
          continue;
        }
        const std::vector<float> values = values_of(from);
        Bytes expected(to.data.size());
        encode_blocks(to.type, values, expected);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), to.data.begin()));
        // Normal numbers: a deviation of 5 % or 1 % of the largest would be a wrong scale or place.
        float largest = 0;
        for (const float value : values) largest = std::max(largest, std::fabs(value));
        const std::vector<float> back = values_of(to);
        const float most =
            to.type == ElementType::q8_0 || to.type == ElementType::q6_k ? 0.03F : 0.15F;
        for (std::size_t j = 0; j < values.size(); ++j) {
          ASSERT_LE(std::fabs(back[j] - values[j]), most * largest) << j;
        }
      }
      EXPECT_EQ(summary.n_bytes_read, n_bytes_read);
      EXPECT_EQ(summary.n_bytes, fs::file_size(out()));
      std::int64_t n_tensors = 0;
      for (const QuantisedShare& share : summary.shares) n_tensors += share.n_tensors;
      EXPECT_EQ(n_tensors, std::ssize(planned));
    }
  }
}

TEST_F(Quantise, CopiesMetadataByteForByte) {
  write_source();
  quantise_file(source(), out(), {});
  const auto before = open_gguf(source());
  const auto after = open_gguf(out());
  ASSERT_EQ(after->entries().size(), before->entries().size() + 2);
  for (std::size_t i = 0; i < before->entries().size(); ++i) {
    EXPECT_TRUE(std::equal(before->entries()[i].begin(), before->entries()[i].end(),
                           after->entries()[i].begin(), after->entries()[i].end()))
        << before->metadata()[i].first;
  }
  EXPECT_EQ(after->integer("general.file_type"), 15);
  EXPECT_EQ(after->integer("general.quantization_version"), 2);
  // Existing keys are replaced in place.
  quantise_file(out(), root() / "again.gguf", {.type = "q8_0", .requantise = true});
  const auto again = open_gguf(root() / "again.gguf");
  EXPECT_EQ(again->metadata().size(), after->metadata().size());
  EXPECT_EQ(again->integer("general.file_type"), 7);
}

TEST_F(Quantise, GivesTheSameBytesOnAnyThreads) {
  write_source();
  Bytes first;
  for (const int threads : {1, 2, 5}) {
    quantise_file(source(), out(), {.replace = true, .threads = threads});
    const Bytes bytes = read_file(out());
    if (first.empty()) first = bytes;
    EXPECT_EQ(bytes, first) << threads;
  }
}

TEST_F(Quantise, WhatItWritesGenerates) {
  write_source();
  for (const std::string& type : quantised_file_types()) {
    quantise_file(source(), out(), {.type = type, .replace = true});
    Generator generator(Model::load(out()), {});
    GenerateOptions options;
    options.max_tokens = 5;
    EXPECT_FALSE(generator.generate("a", options).ids.empty()) << type;
  }
}

TEST_F(Quantise, SaysWhatIsNotAsItsNameSays) {
  write_source();
  EXPECT_THAT(quantise_file(source(), out(), {.type = "q8_0"}).warnings, IsEmpty());
  // ffn_down of all eight layers.
  EXPECT_THAT(quantise_file(source(), out(), {.type = "q6_k", .replace = true}).warnings,
              ElementsAre(HasSubstr("asks for: 8 of 58 matrices, whose rows are")));
}

TEST_F(Quantise, TakesWhatIsQuantisedOnlyWhenAsked) {
  write_source(ElementType::q4_0);
  EXPECT_THAT(quantising({.type = "q8_0"}),
              ThrowsMessage<Error>(AllOf(HasSubstr("[quantize] "), HasSubstr("tensor 'token_embd"),
                                         HasSubstr("expected f32, f16, bf16 or q8_0 (or --requant"),
                                         HasSubstr("got q4_0"))));
  EXPECT_TRUE(is_clean());
  const QuantiseSummary summary =
      quantise_file(source(), out(), {.type = "q8_0", .requantise = true});
  EXPECT_THAT(summary.warnings, ElementsAre(HasSubstr("quantised before: 58 of 58 matrices")));
  // A tensor that has its type already is copied; in q4_0 files the head is q6_k.
  write_gguf(test::make_tiny_model(wide_shape()), source(), {ElementType::q4_0, ElementType::q6_k});
  EXPECT_THAT(quantise_file(source(), out(), {.type = "q4_0", .replace = true}).warnings,
              IsEmpty());
  const auto before = open_gguf(source());
  const auto after = open_gguf(out());
  for (const TensorView& from : before->tensors()) {
    const TensorView& to = *after->find(from.name);
    EXPECT_TRUE(std::equal(from.data.begin(), from.data.end(), to.data.begin(), to.data.end()));
  }
}

// gpt-oss as published: experts in MXFP4, which can be read but not written.
TEST_F(Quantise, ReadsExpertsInMxfp4) {
  const fs::path golden = test::golden_directory("gpt_oss_mxfp4") / "model.gguf";
  EXPECT_THAT([&] { quantise_file(golden, out(), {.type = "q8_0"}); },
              ThrowsMessage<Error>(AllOf(HasSubstr("_exps.weight"), HasSubstr("got mxfp4"))));
  EXPECT_FALSE(fs::exists(out()));
  quantise_file(golden, out(), {.type = "q8_0", .requantise = true});
  const auto before = open_gguf(golden);
  const auto after = open_gguf(out());
  int n_experts = 0;
  for (const TensorView& from : before->tensors()) {
    const TensorView& to = *after->find(from.name);
    if (from.type != ElementType::mxfp4) continue;
    ++n_experts;
    EXPECT_EQ(to.type, ElementType::q8_0);
    // MXFP4 steps are at least a twelfth of the block's largest value, Q8_0's a 127th.
    const std::vector<float> values = values_of(from);
    const std::vector<float> back = values_of(to);
    for (std::size_t i = 0; i < values.size(); i += 32) {
      float largest = 0;
      for (std::size_t j = i; j < i + 32; ++j) largest = std::max(largest, std::fabs(values[j]));
      for (std::size_t j = i; j < i + 32; ++j) {
        ASSERT_LE(std::fabs(back[j] - values[j]), largest * 0.006F);
      }
    }
  }
  EXPECT_EQ(n_experts, 2 * 3);
  Generator generator(Model::load(out()), {});
  GenerateOptions options;
  options.max_tokens = 5;
  EXPECT_FALSE(generator.generate("a", options).ids.empty());
}

TEST_F(Quantise, TakesAllPartsOfASplitFile) {
  Bytes values(2 * 512 * sizeof(float));
  for (std::size_t i = 0; i < values.size(); i += sizeof(float)) {
    const auto value = static_cast<float>(i % 97) - 48;
    std::memcpy(values.data() + i, &value, sizeof value);
  }
  const auto part = [&](int number) {
    Gguf made;
    made.text("general.architecture", "llama")
        .value("split.no", test::kU16, static_cast<std::uint16_t>(number - 1))
        .value("split.count", test::kU16, std::uint16_t{2})
        .value("split.tensors.count", test::kI32, std::int32_t{2})
        .text("general.name", "parts");
    made.tensor(number == 1 ? "a.weight" : "b.weight", {512, 2}, 0, values);
    const fs::path path =
        root() / (number == 1 ? "m-00001-of-00002.gguf" : "m-00002-of-00002.gguf");
    write_file(path, made.bytes());
    return path;
  };
  const fs::path first = part(1);
  const fs::path second = part(2);
  quantise_file(first, out(), {.type = "q8_0"});
  const auto file = open_gguf(out());
  EXPECT_EQ(file->tensors().size(), 2U);
  EXPECT_EQ(file->find("b.weight")->type, ElementType::q8_0);
  EXPECT_EQ(file->find_metadata("split.no"), nullptr);
  EXPECT_EQ(file->find_metadata("split.count"), nullptr);
  EXPECT_EQ(file->find_metadata("split.tensors.count"), nullptr);
  EXPECT_EQ(*file->string("general.name"), "parts");
  EXPECT_THAT([&] { quantise_file(first, second, {.replace = true}); },
              ThrowsMessage<Error>(HasSubstr("another file than those that are read")));
}

TEST_F(Quantise, NamesTheTensorOfWhatIsNoNumber) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  struct Bad {
    float value;
    const char* type;
    const char* message;
  };
  for (const Bad& bad : {Bad{kNan, "q4_k_m", "expected finite numbers, got nan in row 2"},
                         Bad{-kInfinity, "q8_0", "expected finite numbers, got -inf in row 2"},
                         Bad{1e6F, "q4_0", "numbers of at most 524032 for q4_0, got 1000000"}}) {
    TinyModel model = test::make_tiny_model(wide_shape());
    model.at("model.layers.5.mlp.up_proj.weight").values[2 * 256 + 77] = bad.value;
    write_gguf(model, source(), {});
    EXPECT_THAT(quantising({.type = bad.type}),
                ThrowsMessage<Error>(AllOf(HasSubstr("source.gguf: tensor 'blk.5.ffn_up.weight': "),
                                           HasSubstr(bad.message))));
    EXPECT_TRUE(is_clean());
  }
}

// The first of several errors is reported, whichever thread finds it first, also after the first
// piece.
TEST_F(Quantise, CountsRowsFromTheTensorsBegin) {
  std::vector<float> values(4096 * 300, 1.0F);
  for (const std::size_t row : {290, 293, 299}) {
    values[row * 4096 + 4095] = std::numeric_limits<float>::quiet_NaN();
  }
  Bytes bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  write_file(source(), Gguf().tensor("a.weight", {4096, 300}, 0, bytes).bytes());
  for (const int threads : {1, 4}) {
    EXPECT_THAT(quantising({.type = "q8_0", .threads = threads}),
                ThrowsMessage<Error>(HasSubstr("got nan in row 290")));
  }
}

TEST_F(Quantise, RefusesAndLeavesNothing) {
  write_source();
  EXPECT_THAT(quantising({.type = "q4_k"}),
              ThrowsMessage<UsageError>(
                  HasSubstr("type: expected one of q8_0, q6_k, q4_k_m, q4_0, got q4_k")));
  EXPECT_THAT([&] { quantise_file(root(), out()); },
              ThrowsMessage<Error>(HasSubstr("expected a .gguf file (convert_hf_to_gguf.py")));
  EXPECT_THAT([&] { quantise_file(root() / "none.gguf", out()); },
              ThrowsMessage<Error>(HasSubstr("none.gguf")));
  EXPECT_THAT([&] { quantise_file(source(), root()); },
              ThrowsMessage<Error>(HasSubstr("a place for a file, got a directory")));
  EXPECT_THAT([&] { quantise_file(source(), root() / "nowhere" / "out.gguf"); },
              ThrowsMessage<Error>(HasSubstr("No such file")));
  EXPECT_THAT([&] { quantise_file(source(), source(), {.replace = true}); },
              ThrowsMessage<Error>(HasSubstr("another file than those that are read")));
  EXPECT_TRUE(is_clean());
  write_file(out(), Bytes(3));
  EXPECT_THAT(quantising({}),
              ThrowsMessage<Error>(HasSubstr("a place where no file is (or --force)")));
  EXPECT_EQ(read_file(out()), Bytes(3));

  write_file(source(), Gguf().tensor("a.weight", {256, 2}, 21, Bytes(220)).bytes());
  EXPECT_THAT(quantising({.replace = true}),
              ThrowsMessage<Error>(HasSubstr("'a.weight': expected a type that can be read, got "
                                             "iq3_s")));
  EXPECT_EQ(read_file(out()), Bytes(3));
}

// The caller throws from its progress callback, as the program does on Ctrl-C.
TEST_F(Quantise, EndsWhenProgressThrows) {
  write_source();
  struct Enough {};
  std::vector<double> shares;
  const auto progress = [&](double share) {
    shares.push_back(share);
    if (share > 0.5) throw Enough();
  };
  EXPECT_THROW(quantise_file(source(), out(), {.progress = progress}), Enough);
  EXPECT_TRUE(is_clean());
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_GT(shares.size(), 3U);
  shares.clear();
  quantise_file(source(), out(), {.progress = [&](double share) { shares.push_back(share); }});
  EXPECT_EQ(shares.back(), 1.0);
}

// Rows that no block divides, rows as long as a piece and longer, integers, and an alignment.
TEST_F(Quantise, OddShapesAndTypes) {
  constexpr std::size_t kLong = (1 << 20) + 512;
  const auto floats = [](std::size_t n) {
    std::vector<float> values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>((i * 7919) % 1013) - 506;
    Bytes bytes(n * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  };
  Gguf made;
  made.alignment = 64;
  made.text("general.architecture", "llama")
      .value("general.alignment", test::kU32, std::uint32_t{64});
  made.tensor("odd.weight", {40, 3}, 0, floats(120))
      .tensor("long.weight", {kLong, 2}, 0, floats(2 * kLong))
      .tensor("cube.weight", {32, 3, 5}, 0, floats(480))
      .tensor("column.weight", {256, 1, 1}, 0, floats(256))
      .tensor("numbers.weight", {7, 2}, 26, Bytes(56, std::byte{9}))
      .tensor("vector.weight", {256}, 1, Bytes(512, std::byte{3}));
  write_file(source(), made.bytes());
  const auto before = open_gguf(source());
  quantise_file(source(), out(), {.type = "q4_k_m", .threads = 3});
  const auto after = open_gguf(out());
  const ElementType expected[] = {ElementType::f16, ElementType::q4_k, ElementType::q5_0,
                                  ElementType::f32, ElementType::i32,  ElementType::f16};
  for (std::size_t i = 0; i < 6; ++i) {
    const TensorView& from = before->tensors()[i];
    const TensorView& to = after->tensors()[i];
    EXPECT_EQ(to.type, expected[i]) << to.name;
    EXPECT_EQ(to.shape, from.shape) << to.name;
    if (to.type == from.type) {
      EXPECT_TRUE(std::equal(from.data.begin(), from.data.end(), to.data.begin())) << to.name;
      continue;
    }
    Bytes encoded(to.data.size());
    encode_blocks(to.type, values_of(from), encoded);
    EXPECT_TRUE(std::equal(encoded.begin(), encoded.end(), to.data.begin())) << to.name;
  }
  // The file's own alignment.
  for (const TensorView& tensor : after->tensors()) {
    const auto offset = tensor.data.data() - after->tensors()[0].data.data();
    EXPECT_EQ(offset % 64, 0) << tensor.name;
  }
}

}  // namespace
}  // namespace outrider
