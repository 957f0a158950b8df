// SPDX-License-Identifier: Apache-2.0
// Compares each tensor's type with llama-quantize's plan for the same models
// (tests/golden/make/make_quantise_golden.py).
#include "engine/files/file_type.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/test_files.h"

namespace outrider {
namespace {

using test::Bytes;
using test::Gguf;

// All tensors share the same bytes: contents do not matter here.
Bytes bytes_of(const nlohmann::json& model) {
  Gguf file;
  file.text("general.architecture", model["architecture"].get<std::string>());
  for (const auto& [key, value] : model["keys"].items()) {
    file.value(key, test::kU32, value.get<std::uint32_t>());
  }
  for (const auto& tensor : model["tensors"]) {
    auto sizes = tensor[1].get<std::vector<std::uint64_t>>();
    std::reverse(sizes.begin(), sizes.end());
    std::uint64_t n = 1;
    for (const std::uint64_t size : sizes) n *= size;
    file.tensor(tensor[0].get<std::string>(), sizes, 0, Bytes(n * sizeof(float)));
  }
  return file.bytes();
}

TEST(FileType, PlansWhatLlamaQuantizePlans) {
  const auto golden =
      nlohmann::json::parse(std::ifstream(OUTRIDER_SOURCE_DIR "/tests/golden/quantise.json"));
  ASSERT_GE(golden["models"].size(), 13U);
  for (const auto& [name, model] : golden["models"].items()) {
    const Bytes bytes = bytes_of(model);
    const auto file = parse_gguf(bytes, name);
    ASSERT_EQ(model["types"].size(), file_types().size());
    for (const FileType& type : file_types()) {
      const auto expected = model["types"][std::string(type.name)];
      const std::vector<PlannedTensor> planned = plan_tensors(type, *file);
      ASSERT_EQ(planned.size(), expected.size());
      for (std::size_t i = 0; i < planned.size(); ++i) {
        EXPECT_EQ(name_of(planned[i].type), expected[i].get<std::string>())
            << name << ": " << file->tensors()[i].name << " as " << type.name;
      }
    }
  }
}

// If not even blocks of 32 divide a row, llama-quantize uses f16 for all; here 16-bit tensors keep
// their type.
TEST(FileType, RowsOfNoWholeBlocks) {
  Gguf made;
  made.text("general.architecture", "llama");
  made.tensor("a.weight", {40, 2}, 0, Bytes(320))
      .tensor("b.weight", {40, 2}, 30, Bytes(160))
      .tensor("c.weight", {40, 2}, 1, Bytes(160))
      .tensor("d.weight", {40, 2}, 26, Bytes(320))
      .tensor("e.weight", {64, 2}, 0, Bytes(512))
      .tensor("f.weight", {64, 2}, 2, Bytes(72));
  const Bytes bytes = made.bytes();
  const auto file = parse_gguf(bytes, "made");
  const std::vector<PlannedTensor> planned = plan_tensors(*find_file_type("q4_k_m"), *file);
  const ElementType expected[] = {ElementType::f16, ElementType::bf16, ElementType::f16,
                                  ElementType::i32, ElementType::q5_0, ElementType::q5_0};
  for (std::size_t i = 0; i < planned.size(); ++i) {
    EXPECT_EQ(planned[i].type, expected[i]) << i;
    EXPECT_EQ(planned[i].wanted, i == 3 ? ElementType::i32 : ElementType::q4_k) << i;
  }
}

// Metadata may hold any values.
TEST(FileType, OddMetadataIsNoMatter) {
  for (const std::int64_t odd : {INT64_MIN, std::int64_t{-1}, INT64_MAX}) {
    Gguf made;
    made.text("general.architecture", "llama")
        .value("llama.block_count", test::kI64, odd)
        .value("llama.expert_count", test::kI64, odd)
        .texts("llama.attention.head_count", {"many"});
    made.tensor("blk.99999999999999999999.ffn_down.weight", {256, 2}, 0, Bytes(2048))
        .tensor("blk.-3.ffn_down.weight", {256, 2}, 0, Bytes(2048))
        .tensor("blk.ffn_down.weight", {256, 2}, 0, Bytes(2048));
    const Bytes bytes = made.bytes();
    const auto file = parse_gguf(bytes, "made");
    for (const FileType& type : file_types()) {
      EXPECT_EQ(plan_tensors(type, *file).size(), 3U);
    }
  }
  EXPECT_EQ(find_file_type("q4_k"), nullptr);
}

}  // namespace
}  // namespace outrider
