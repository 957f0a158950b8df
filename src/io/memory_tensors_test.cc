// SPDX-License-Identifier: Apache-2.0
#include "io/memory_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "outrider/error.h"

namespace outrider {
namespace {

using ::testing::HasSubstr;

const std::vector<float> kValues = {1, 2, 3, 4, 5, 6};

TensorView view_of(const std::string& name, std::vector<std::int64_t> shape) {
  return {.name = name,
          .type = ElementType::f32,
          .shape = std::move(shape),
          .data = std::as_bytes(std::span(kValues))};
}

std::string refusal_of(std::vector<TensorView> tensors) {
  try {
    const MemoryTensors source(std::move(tensors), "memory");
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(MemoryTensors, AreFoundByName) {
  const MemoryTensors source({view_of("a", {2, 3}), view_of("b", {6})}, "memory");
  ASSERT_NE(source.find("a"), nullptr);
  EXPECT_EQ(source.find("c"), nullptr);
  EXPECT_EQ(source.tensors().size(), 2U);
  EXPECT_EQ(source.description(), "memory");
  std::vector<float> row(3);
  decode_rows(*source.find("a"), 1, 1, row);
  EXPECT_THAT(row, ::testing::ElementsAre(4, 5, 6));
  source.release(*source.find("a"));  // the bytes remain
  decode_rows(*source.find("a"), 0, 1, row);
  EXPECT_THAT(row, ::testing::ElementsAre(1, 2, 3));
}

TEST(MemoryTensors, RefuseWhatNoFileCanSay) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(refusal_of({view_of("a", {6}), view_of("a", {6})}), HasSubstr("unique"));
  EXPECT_THAT(refusal_of({view_of("a", {7})}),
              HasSubstr("[read tensors] memory: tensor 'a': expected as many bytes as [7] of f32 "
                        "take, got 24"));
  EXPECT_THAT(refusal_of({view_of("a", {2})}), HasSubstr("got 24"));
  EXPECT_THAT(refusal_of({view_of("a", {-2, -3})}), HasSubstr("got [-2, -3]"));
  EXPECT_THAT(refusal_of({view_of("a", {kMax, 3})}), HasSubstr("that can be counted"));
  EXPECT_THAT(refusal_of({view_of("a", {kMax})}), HasSubstr("as many bytes as"));
  TensorView foreign = view_of("a", {5});
  foreign.type = ElementType::foreign;
  EXPECT_EQ(refusal_of({foreign}), "");
}

TEST(KeptTensors, OwnACopyOfEach) {
  std::vector<float> values = kValues;
  TensorView one = view_of("a", {6});
  one.data = std::as_bytes(std::span(values));
  TensorView same = one;
  KeptTensors kept("memory");
  kept.keep(one);
  kept.keep(same);
  EXPECT_EQ(one.data.data(), same.data.data());
  EXPECT_NE(static_cast<const void*>(one.data.data()), values.data());
  values.assign(6, 0);
  std::vector<float> row(6);
  decode_rows(one, 0, 1, row);
  EXPECT_EQ(row, kValues);
  TensorView none;
  kept.keep(none);
  EXPECT_TRUE(none.data.empty());
}

TEST(PlainTypes, HaveNames) {
  EXPECT_EQ(plain_type_named("f32"), ElementType::f32);
  EXPECT_EQ(plain_type_named("bf16"), ElementType::bf16);
  EXPECT_EQ(plain_type_named("i64"), ElementType::i64);
  EXPECT_EQ(plain_type_named("q4_0"), std::nullopt);
  EXPECT_EQ(plain_type_named("float8_e4m3fn"), std::nullopt);
}

}  // namespace
}  // namespace outrider
