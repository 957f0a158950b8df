// SPDX-License-Identifier: Apache-2.0
#include "engine/batch/stop_strings.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace outrider {
namespace {

// Pushing everything at once and byte by byte gives the same text.
std::string run(const std::vector<std::string>& stops, const std::string& text, std::size_t step) {
  StopStrings strings(stops);
  std::string out;
  for (std::size_t at = 0; at < text.size() && !strings.found(); at += step) {
    strings.push(text.substr(at, step), out);
  }
  strings.finish(out);
  return out;
}

TEST(StopStrings, EndsTheTextBeforeTheString) {
  for (const std::size_t step : {1, 2, 3, 100}) {
    EXPECT_EQ(run({"END"}, "a cat ENDs", step), "a cat ");
    EXPECT_EQ(run({"END"}, "a cat EN", step), "a cat EN");
    EXPECT_EQ(run({"aab"}, "aaab", step), "a");
    EXPECT_EQ(run({"\n\n", "###"}, "one\n##\n\ntwo", step), "one\n##");
    EXPECT_EQ(run({"", "x"}, "abc", step), "abc");
    EXPECT_EQ(run({}, "abc", step), "abc");
    EXPECT_EQ(run({"a"}, "abc", step), "");
  }
}

TEST(StopStrings, TheStringThatIsCompleteFirstWins) {
  for (const std::size_t step : {1, 100}) {
    EXPECT_EQ(run({"abcd", "bc"}, "xabcd", step), "xa");
    EXPECT_EQ(run({"bc", "abc"}, "xabcd", step), "x");
  }
}

TEST(StopStrings, SaysWhichOneItWas) {
  StopStrings strings({"bc", "abc", "x"});
  std::string out;
  strings.push("za", out);
  EXPECT_EQ(strings.which(), "");
  strings.push("bcx", out);
  EXPECT_EQ(strings.which(), "abc");
}

TEST(StopStrings, HoldsBackNoMoreThanABeginning) {
  StopStrings strings({"stop"});
  std::string out = "before ";
  strings.push("a st", out);
  EXPECT_EQ(out, "before a ");
  strings.push("ar", out);
  EXPECT_EQ(out, "before a star");
  strings.push("s", out);
  EXPECT_EQ(out, "before a star");
  strings.push("stop!", out);
  EXPECT_EQ(out, "before a stars");
  EXPECT_TRUE(strings.found());
  strings.finish(out);
  strings.push("more", out);
  EXPECT_EQ(out, "before a stars");
}

// Random texts over two letters, compared with a search of the whole text.
TEST(StopStrings, AgreesWithASearchOfTheWholeText) {
  std::mt19937 random(7);
  const auto letters = [&](std::size_t n) {
    std::string text;
    for (std::size_t i = 0; i < n; ++i) text += random() % 2 ? 'a' : 'b';
    return text;
  };
  for (int trial = 0; trial < 2000; ++trial) {
    const std::vector<std::string> stops = {letters(2 + random() % 4), letters(2 + random() % 4)};
    const std::string text = letters(12);
    std::size_t end = std::string::npos;
    std::size_t begin = std::string::npos;
    for (const std::string& stop : stops) {
      const std::size_t at = text.find(stop);
      if (at == std::string::npos) continue;
      if (at + stop.size() < end || (at + stop.size() == end && at < begin)) {
        end = at + stop.size();
        begin = at;
      }
    }
    EXPECT_EQ(run(stops, text, 1 + random() % 3), text.substr(0, begin))
        << stops[0] << " " << stops[1] << " " << text;
  }
}

}  // namespace
}  // namespace outrider
