// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/formats/charsmap.h"

#include <gtest/gtest.h>

#include <random>

#include "io/test_files.h"
#include "outrider/error.h"
#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

constexpr std::size_t kMax_bytes = 1000;

std::string mapped(const Charsmap& map, std::string text) {
  map_graphemes(map, text, kMax_bytes);
  return text;
}

// The result of a rule at the beginning of a text, and "-" if there is none.
std::string longest(const Charsmap& map, std::string_view text) {
  const auto rule = map.longest(text);
  return rule ? std::to_string(rule->n_bytes) + std::string(rule->text) : "-";
}
std::string shortest(const Charsmap& map, std::string_view text) {
  const auto rule = map.shortest(text);
  return rule ? std::to_string(rule->n_bytes) + std::string(rule->text) : "-";
}

TEST(Charsmap, FindsRules) {
  const Charsmap map(test::charsmap({{"ﬁ", "fi"}, {"a", "A"}, {"abc", ""}, {"é", "e"}}), "test");
  EXPECT_EQ(longest(map, "ﬁx"), "3fi");
  EXPECT_EQ(longest(map, "abcd"), "3");
  EXPECT_EQ(shortest(map, "abcd"), "1A");
  EXPECT_EQ(longest(map, "abd"), "1A");
  EXPECT_EQ(longest(map, "b"), "-");
  EXPECT_EQ(longest(map, ""), "-");
  EXPECT_EQ(longest(map, std::string_view("\0a", 2)), "-");
}

// The grapheme rule by hand: a grapheme of less than six bytes becomes the result of its first
// rule, whatever else it contains.
TEST(Charsmap, Graphemes) {
  const Charsmap map(
      test::charsmap({{"é", "e"}, {"e\u0301", "E"}, {"½", "1/2"}, {"\r", "R"}, {"\u0600", "N"}}),
      "test");
  EXPECT_EQ(mapped(map, "aéb"), "aeb");
  EXPECT_EQ(mapped(map, "e\u0301b"), "Eb");
  EXPECT_EQ(mapped(map, "½\u0301"), "1/2");                    // 4 bytes: the accent is lost
  EXPECT_EQ(mapped(map, "½\u0301\u0302"), "1/2\u0301\u0302");  // 6 bytes: character by character
  EXPECT_EQ(mapped(map, "e\u0301\u0302"), "E");                // 5 bytes
  EXPECT_EQ(mapped(map, "e\u0301\u0302\u0303"), "e\u0301\u0302\u0303");
  EXPECT_EQ(mapped(map, "\r\n\r"), "RR");  // a line end is one grapheme
  EXPECT_EQ(mapped(map, "a\n\r"), "a\nR");
  EXPECT_EQ(mapped(map, "\u0600½"), "N");  // a sign and its number are one grapheme
  EXPECT_EQ(mapped(map, "😀é"), "😀e");
}

TEST(Charsmap, GrowthIsBounded) {
  const Charsmap map(test::charsmap({{"a", std::string(200, 'b')}}), "test");
  EXPECT_EQ(mapped(map, "aaaaa").size(), 1000u);
  EXPECT_THROW(mapped(map, "aaaaaa"), Error);
}

std::string error_of(const std::string& bytes) {
  try {
    const Charsmap map(bytes, "bad.json: table");
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("bad.json: table"), std::string::npos) << message;
    return message;
  }
  return "none";
}

std::string table(const std::vector<std::uint32_t>& units, std::string_view texts) {
  test::Bytes bytes;
  test::append(bytes, static_cast<std::uint32_t>(units.size() * 4));
  for (const std::uint32_t unit : units) test::append(bytes, unit);
  test::append(bytes, texts);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Charsmap, RefusesWhatIsNoTable) {
  EXPECT_NE(error_of("").find("0 bytes"), std::string::npos);
  EXPECT_NE(error_of("abc").find("3 bytes"), std::string::npos);
  EXPECT_NE(error_of(std::string("\0\0\0\0", 4)).find("0 bytes"), std::string::npos);
  EXPECT_NE(error_of(std::string("\x05\0\0\0abcde", 9)).find("5 bytes"), std::string::npos);
  EXPECT_NE(error_of(std::string("\x08\0\0\0abcd", 8)).find("8 bytes"), std::string::npos);
  const std::string good = test::charsmap({{"a", "b"}});
  EXPECT_EQ(error_of(good), "none");
  EXPECT_NE(error_of(good.substr(0, good.size() - 2) + "\xFF").find("UTF-8"), std::string::npos);
  // A rule that begins after the texts, and one in the middle of a character.
  EXPECT_NE(error_of(good.substr(0, good.size() - 2)).find("begin within"), std::string::npos);
  std::string moved = test::charsmap({{"a", "é"}});
  moved[4 + 4 * 512] = '\x01';
  EXPECT_NE(error_of(moved).find("begin within"), std::string::npos);
}

// With a loop every look-up would be as long as the text.
TEST(Charsmap, RefusesLoopsAndAbsurdKeys) {
  // The child of position 0 for 'a' leads back to position 0.
  std::vector<std::uint32_t> units(256);
  units['a'] = std::uint32_t{'a'} << 10 | 'a';
  EXPECT_NE(error_of(table(units, "x")).find("loop"), std::string::npos);
  EXPECT_EQ(error_of(test::charsmap({{std::string(256, 'a'), "b"}})), "none");
  EXPECT_NE(error_of(test::charsmap({{std::string(257, 'a'), "b"}})).find("256 bytes"),
            std::string::npos);
}

// For any units: an Error, or a table whose results lie within the text and are UTF-8.
TEST(Charsmap, RandomUnitsAreSafe) {
  std::mt19937 random(1);
  int n_tables = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::uint32_t> units(256 + random() % 64);
    for (std::size_t i = 0; i < units.size(); ++i) {
      if (random() % 3 == 0) continue;
      units[i] = (random() % 400) << 10 | (random() % 2) << 8 |
                 static_cast<std::uint32_t>(i ^ (random() % 256)) % 256;
      if (random() % 8 == 0) units[i] = std::uint32_t{1} << 31 | (random() % 12);
    }
    try {
      const Charsmap map(table(units, std::string_view("a\0é\0水\0", 8)), "random");
      ++n_tables;
      for (int i = 0; i < 20; ++i) {
        std::string text;
        while (text.size() < 12) text += std::string_view("abé水ÿ").substr(random() % 2, 1);
        text += "é水";
        if (const auto rule = map.longest(text)) {
          EXPECT_LE(rule->n_bytes, text.size());
          EXPECT_TRUE(is_valid_utf8(rule->text));
        }
        EXPECT_TRUE(is_valid_utf8(mapped(map, text)));
      }
    } catch (const Error&) {
    }
  }
  EXPECT_GT(n_tables, 50);
}

}  // namespace
}  // namespace outrider
