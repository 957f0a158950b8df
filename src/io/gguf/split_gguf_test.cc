// SPDX-License-Identifier: Apache-2.0
// GGUF files in parts, named and numbered as by llama-gguf-split (llama.cpp 0.7).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>

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

class SplitGguf : public ::testing::Test {
 protected:
  static std::string part_name(int number, int n_parts) {
    return "model-0000" + std::to_string(number) + "-of-0000" + std::to_string(n_parts) + ".gguf";
  }
  // Part `number` (from 1) holds the tensor "t<number>", one float of that value.
  void write_part(int number, int n_parts, int says_number, std::int32_t n_tensors) const {
    Gguf writer;
    writer.value("split.no", test::kU16, static_cast<std::uint16_t>(says_number - 1));
    writer.value("split.count", test::kU16, static_cast<std::uint16_t>(n_parts));
    writer.value("split.tensors.count", test::kI32, n_tensors);
    if (number == 1) writer.text("general.name", "whole");
    Bytes data;
    test::append(data, static_cast<float>(number));
    const Bytes bytes = writer.tensor("t" + std::to_string(number), {1}, 0, data).bytes();
    std::ofstream(directory_.path() / part_name(number, n_parts), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  }
  auto opening(const std::string& name) const {
    return [this, name] { open_gguf(directory_.path() / name); };
  }
  static auto fails(const std::string& text) { return ThrowsMessage<Error>(HasSubstr(text)); }

  test::TemporaryDirectory directory_;
};

TEST_F(SplitGguf, OpensByItsFirstPart) {
  for (int i = 1; i <= 3; ++i) write_part(i, 3, i, 3);
  const auto file = open_gguf(directory_.path() / part_name(1, 3));
  EXPECT_EQ(*file->string("general.name"), "whole");
  ASSERT_EQ(file->tensors().size(), 3u);
  for (int i = 1; i <= 3; ++i) {
    const TensorView* tensor = file->find("t" + std::to_string(i));
    ASSERT_NE(tensor, nullptr);
    float value = 0;
    decode_rows(*tensor, 0, 1, {&value, 1});
    EXPECT_EQ(value, static_cast<float>(i));
    file->release(*tensor);
  }
  EXPECT_THAT(opening(part_name(2, 3)), fails("expected the first of its 3 parts, got part 2"));
}

TEST_F(SplitGguf, SaysWhichPartIsMissingOrAnother) {
  write_part(1, 2, 1, 2);
  EXPECT_THAT(opening(part_name(1, 2)), fails(part_name(2, 2)));
  write_part(2, 2, 1, 2);
  EXPECT_THAT(opening(part_name(1, 2)), fails("expected part 2 of 2, got part 1 of 2"));
  write_part(2, 2, 2, 2);
  EXPECT_EQ(open_gguf(directory_.path() / part_name(1, 2))->tensors().size(), 2u);
  write_part(1, 2, 1, 7);
  EXPECT_THAT(opening(part_name(1, 2)), fails("expected 7 tensors in all parts, got 2"));
}

TEST_F(SplitGguf, NeedsTheNameByWhichTheOthersAreFound) {
  write_part(1, 2, 1, 2);
  write_part(2, 2, 2, 2);
  std::filesystem::rename(directory_.path() / part_name(1, 2), directory_.path() / "first.gguf");
  EXPECT_THAT(opening("first.gguf"), fails("a name that ends in -00001-of-00002.gguf"));
}

// A single part is an ordinary file, whatever its name.
TEST_F(SplitGguf, OfOnePartIsWhole) {
  write_part(1, 1, 1, 1);
  std::filesystem::rename(directory_.path() / part_name(1, 1), directory_.path() / "whole.gguf");
  EXPECT_EQ(open_gguf(directory_.path() / "whole.gguf")->tensors().size(), 1u);
}

}  // namespace
}  // namespace outrider
