// SPDX-License-Identifier: Apache-2.0
#include "io/safetensors/safetensors_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "io/safetensors/safetensors.h"
#include "outrider/error.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

TEST(SafetensorsWriter, ReadsBackWhatWasWritten) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "model.safetensors";
  const std::vector<float> matrix = {1, -2.5F, 0.1F, 3e38F, -0.0F, 1e-40F};
  const std::vector<float> vector = {std::numeric_limits<float>::infinity(), 7};
  const NamedValues tensors[] = {{"b.weight", {2, 3}, matrix}, {"a.weight", {2}, vector}};
  for (const ElementType type : {ElementType::f32, ElementType::bf16}) {
    write_safetensors(path, tensors, type);
    const auto source = open_safetensors(path);
    ASSERT_EQ(source->tensors().size(), 2u);
    for (const NamedValues& tensor : tensors) {
      const TensorView* view = source->find(tensor.name);
      ASSERT_NE(view, nullptr);
      EXPECT_EQ(view->type, type);
      EXPECT_EQ(view->shape, tensor.shape);
      std::vector<float> values(tensor.values.size());
      const std::int64_t n_rows = tensor.shape.size() == 2 ? 2 : 1;
      decode_rows(*view, 0, n_rows, values);
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (type == ElementType::f32) {
          EXPECT_EQ(std::memcmp(&values[i], &tensor.values[i], sizeof(float)), 0);
        } else if (std::isfinite(tensor.values[i])) {
          // Eight bits of precision: half a unit in the last place, or half the smallest subnormal.
          EXPECT_LE(std::abs(values[i] - tensor.values[i]),
                    std::max(std::abs(tensor.values[i]) * 0x1p-8F, 0x1p-134F));
        } else {
          EXPECT_EQ(values[i], tensor.values[i]);
        }
      }
    }
  }
}

TEST(SafetensorsWriter, KeepsIntegersAndFlagsBesideFloats) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "model.safetensors";
  const std::vector<std::uint8_t> flags = {1, 0, 1};
  const std::vector<float> floats = {1, 2, 3, 4, 5};
  const std::vector<std::int64_t> integers = {-7, std::int64_t{1} << 40};
  const NamedValues tensors[] = {{.name = "t2d", .shape = {3}, .flags = flags},
                                 {.name = "weight", .shape = {5}, .values = floats},
                                 {.name = "d2t", .shape = {2}, .integers = integers}};
  write_safetensors(path, tensors, ElementType::bf16);
  const auto source = open_safetensors(path);
  const TensorView* d2t = source->find("d2t");
  const TensorView* t2d = source->find("t2d");
  ASSERT_TRUE(d2t != nullptr && t2d != nullptr && source->find("weight") != nullptr);
  EXPECT_EQ(source->find("weight")->type, ElementType::bf16);
  EXPECT_EQ(d2t->type, ElementType::i64);
  EXPECT_EQ(t2d->type, ElementType::boolean);
  ASSERT_EQ(d2t->data.size(), sizeof(std::int64_t) * integers.size());
  EXPECT_EQ(std::memcmp(d2t->data.data(), integers.data(), d2t->data.size()), 0);
  ASSERT_EQ(t2d->data.size(), flags.size());
  EXPECT_EQ(std::memcmp(t2d->data.data(), flags.data(), flags.size()), 0);
  EXPECT_EQ(source->tensors().front().name, "d2t");  // its eight-byte numbers are aligned there
}

TEST(SafetensorsWriter, RefusesWhatDoesNotFit) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "model.safetensors";
  const std::vector<float> three = {1, 2, 3};
  const NamedValues wrong_shape[] = {{"a", {2, 2}, three}};
  EXPECT_THROW(write_safetensors(path, wrong_shape, ElementType::f32), Error);
  const NamedValues twice[] = {{"a", {3}, three}, {"a", {3}, three}};
  EXPECT_THROW(write_safetensors(path, twice, ElementType::f32), Error);
  const NamedValues right[] = {{"a", {3}, three}};
  EXPECT_THROW(write_safetensors(path, right, ElementType::f16), Error);
  EXPECT_THROW(write_safetensors(directory.path() / "no" / "x", right, ElementType::f32), Error);
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace outrider
