// SPDX-License-Identifier: Apache-2.0
#include "reply/json_scanner.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "reply/json_words.h"

namespace outrider {
namespace {

TEST(JsonScanner, TakesWhatNlohmannTakes) {
  for (const char* text : {"{}",
                           "[]",
                           "0",
                           "-0",
                           "10",
                           "01",
                           "-",
                           "1.",
                           "1.5",
                           ".5",
                           "1e5",
                           "1E+05",
                           "1e",
                           "1e+",
                           "1e-",
                           "1e999",
                           "1e-999",
                           "-1e400",
                           "true",
                           "tru",
                           "truex",
                           "null",
                           "nul",
                           "false",
                           "\"\"",
                           "\"a",
                           "\"\\u00e9\"",
                           "\"\\ud83d\\ude00\"",
                           "\"\\ud83d\"",
                           "\"\\ude00\"",
                           "\"\\ud83dx\"",
                           "\"\\ud83d\\n\"",
                           "\"\\x\"",
                           "\"\\u12g4\"",
                           "[1,2]",
                           "[1,]",
                           "[,1]",
                           "[1 2]",
                           "{\"a\":1}",
                           "{\"a\":1,}",
                           "{\"a\"}",
                           "{a:1}",
                           "{\"a\":1 \"b\":2}",
                           "[1}",
                           "{\"a\":[1,{\"b\":null}]}",
                           "[[[]]]",
                           " [ 1 , 2 ] ",
                           "{ \"a\" : -1.5e-3 , \"b\" : \"\\\\\\\"\" }",
                           "",
                           "--1",
                           "+1",
                           "1-2"}) {
    EXPECT_EQ(json_value(text).has_value(), nlohmann::json::accept(text)) << text;
  }
}

// Random texts of JSON's characters: most have an error somewhere in the middle.
TEST(JsonScanner, AgreesWithNlohmannOnRandomTexts) {
  constexpr std::string_view kBytes = "{}[]\",:0123456789.eE+-truefalsn\\u dD8c";
  std::mt19937 random(17);
  int n_good = 0;
  for (int i = 0; i < 300'000; ++i) {
    std::string text;
    const std::size_t n = 1 + random() % 9;
    for (std::size_t k = 0; k < n; ++k) text += kBytes[random() % kBytes.size()];
    const bool good = nlohmann::json::accept(text);
    n_good += good ? 1 : 0;
    ASSERT_EQ(json_value(text).has_value(), good) << text;
  }
  EXPECT_GT(n_good, 5'000);
}

TEST(JsonScanner, EscapesControlCharactersWithinStrings) {
  const std::string text = std::string("{\"a\": \"x\n\ty\x01") + '\0' + "\"}";
  EXPECT_EQ(json_value(text), "{\"a\": \"x\\n\\ty\\u0001\\u0000\"}");
}

TEST(JsonScanner, BoundsDepthAndNumbers) {
  const auto nested = [](std::size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  EXPECT_TRUE(json_value(nested(JsonScanner::kDeepest)));
  EXPECT_FALSE(json_value(nested(JsonScanner::kDeepest + 1)));
  EXPECT_TRUE(json_value(std::string(JsonScanner::kLongestNumber_bytes, '1')));
  EXPECT_FALSE(json_value(std::string(JsonScanner::kLongestNumber_bytes + 1, '1')));
}

}  // namespace
}  // namespace outrider
