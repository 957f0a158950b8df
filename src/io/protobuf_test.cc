// SPDX-License-Identifier: Apache-2.0
#include "io/protobuf.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "io/test_files.h"
#include "outrider/error.h"

namespace outrider {
namespace {

using test::Protobuf;

TEST(Protobuf, ReadsWhatWasWritten) {
  const Protobuf inner = Protobuf().text(1, "x").real(2, -1.5f);
  const std::string bytes = Protobuf()
                                .integer(1, 0)
                                .integer(200, std::numeric_limits<std::int32_t>::max())
                                .integer(3, -1)
                                .integer(4, 1)
                                .message(5, inner)
                                .text(6, "")
                                .bytes();
  ProtobufReader field(bytes, "test");
  ASSERT_TRUE(field.next());
  EXPECT_EQ(field.number(), 1u);
  EXPECT_EQ(field.integer(), 0);
  EXPECT_FALSE(field.boolean());
  ASSERT_TRUE(field.next());
  EXPECT_EQ(field.number(), 200u);
  EXPECT_EQ(field.integer(), std::numeric_limits<std::int32_t>::max());
  ASSERT_TRUE(field.next());
  EXPECT_EQ(field.integer(), -1);
  ASSERT_TRUE(field.next());
  EXPECT_TRUE(field.boolean());
  ASSERT_TRUE(field.next());
  ProtobufReader within(field.bytes(), "test");
  ASSERT_TRUE(within.next());
  EXPECT_EQ(within.bytes(), "x");
  ASSERT_TRUE(within.next());
  EXPECT_EQ(within.real(), -1.5f);
  EXPECT_EQ(within.where(), "test: field 2");
  EXPECT_FALSE(within.next());
  ASSERT_TRUE(field.next());
  EXPECT_EQ(field.bytes(), "");
  EXPECT_FALSE(field.next());
}

// The worked example of the format's documentation: field 1 with the integer 150.
TEST(Protobuf, ReadsTheDocumentedExample) {
  ProtobufReader field("\x08\x96\x01", "test");
  ASSERT_TRUE(field.next());
  EXPECT_EQ(field.number(), 1u);
  EXPECT_EQ(field.integer(), 150);
  EXPECT_FALSE(field.next());
}

TEST(Protobuf, SixtyFourBitsArePassedOver) {
  ProtobufReader field(std::string_view("\x09"
                                        "12345678"
                                        "\x10\x05",
                                        11),
                       "test");
  ASSERT_TRUE(field.next());
  ASSERT_TRUE(field.next());
  EXPECT_EQ(field.integer(), 5);
}

std::string error_of(std::string_view bytes) {
  ProtobufReader field(bytes, "bad");
  try {
    while (field.next()) {
    }
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(Protobuf, RefusesWhatIsNoMessage) {
  EXPECT_NE(error_of("\x08").find("1 more bytes, got 0"), std::string::npos);
  EXPECT_NE(error_of("\x0A\x05"
                     "abc")
                .find("5 more bytes, got 3"),
            std::string::npos);
  EXPECT_NE(error_of("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01").find("bad"),
            std::string::npos);
  EXPECT_NE(error_of("\x0D"
                     "abc")
                .find("4 more bytes"),
            std::string::npos);
  EXPECT_NE(error_of(std::string(12, '\xFF')).find("ten bytes"), std::string::npos);
  EXPECT_NE(error_of(std::string("\x00\x01", 2)).find("numbered from 1"), std::string::npos);
  for (const char* const group : {"\x0B", "\x0C", "\x0E", "\x0F"}) {
    EXPECT_NE(error_of(group).find("field 1"), std::string::npos);
  }
}

TEST(Protobuf, RefusesValuesOfOtherTypes) {
  const std::string bytes = Protobuf().text(1, "a").integer(2, 1LL << 40).bytes();
  ProtobufReader field(bytes, "bad");
  ASSERT_TRUE(field.next());
  EXPECT_THROW(static_cast<void>(field.integer()), Error);
  EXPECT_THROW(static_cast<void>(field.boolean()), Error);
  EXPECT_THROW(static_cast<void>(field.real()), Error);
  ASSERT_TRUE(field.next());
  EXPECT_THROW(static_cast<void>(field.bytes()), Error);
  EXPECT_THROW(static_cast<void>(field.integer()), Error);  // 32 bits
}

}  // namespace
}  // namespace outrider
