// SPDX-License-Identifier: Apache-2.0
// Compares splitting in parts with running one step after another on the whole text.
#include "tokenizer/patterns/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <iterator>
#include <random>

#include "tokenizer/patterns/cutting_patterns.h"
#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

using Words = std::vector<std::string>;

Words cut(const PreTokenizer& pre_tokenizer, std::string_view text) {
  Cutting cutting;
  MatchScratch scratch;
  Words words;
  cutting.start(pre_tokenizer, text, true);
  for (;;) {
    const std::span<const TextRange> part = cutting.next(scratch);
    if (part.empty()) return words;
    for (const TextRange& word : part) {
      words.emplace_back(cutting.text().substr(word.begin, word.end - word.begin));
    }
  }
}

// Matches and the text between them.
Words isolate(const Pattern& pattern, const Words& pieces) {
  Words words;
  MatchScratch scratch;
  std::vector<TextRange> matches;
  for (const std::string& piece : pieces) {
    pattern.find_all(piece, scratch, matches);
    std::size_t done = 0;
    const auto put = [&](std::size_t begin, std::size_t end) {
      if (begin < end) words.push_back(piece.substr(begin, end - begin));
    };
    for (const TextRange& match : matches) {
      put(done, match.begin);
      put(match.begin, match.end);
      done = match.end;
    }
    put(done, piece.size());
  }
  return words;
}

std::string random_text(std::mt19937& random) {
  constexpr std::string_view kParts[] = {"word", " the", "  ",           "\n",  "1",  "2026",
                                         ", ",   "!?",   "\u00e9\u4e2d", "'ll", "\t", "(x)"};
  std::string text;
  for (std::size_t i = random() % 6 == 0 ? random() % 6000 : random() % 20; i > 0; --i) {
    text += kParts[random() % std::size(kParts)];
  }
  return text;
}

TEST(PreTokenizer, ByPartsAsOneStepAfterAnother) {
  const Pattern number = Pattern::regex(R"(\p{N})", "test");
  const Pattern words = Pattern::regex(cut::kGpt2, "test");
  const Pattern punctuation = Pattern::regex(R"([\p{P}$+<=>^`|~])", "test");
  const Pattern between_threes = Pattern::regex(cut::kBetweenThrees, "test");
  using Split = SplitByPattern;
  const PreTokenizer all({Split{number}, SplitByClass{is_punctuation}, Split{words},
                          ByteLevelWords{false, false, {}}});
  const PreTokenizer threes({Split{Pattern::regex(R"(\p{N}+)", "test")}, Split{between_threes}});
  std::mt19937 random(13);
  std::size_t n_words = 0;
  for (int round = 0; round < 300; ++round) {
    const std::string text = random_text(random);
    const Words expected = isolate(words, isolate(punctuation, isolate(number, {text})));
    EXPECT_TRUE(cut(all, text) == expected) << text;
    EXPECT_TRUE(cut(threes, text) ==
                isolate(between_threes, isolate(Pattern::regex(R"(\p{N}+)", "test"), {text})));
    n_words += expected.size();
  }
  EXPECT_TRUE(all.words_are_bytes());
  EXPECT_FALSE(threes.words_are_bytes());
  EXPECT_GT(n_words, 100000u);
}

// Steps that need the whole text at once, between others.
TEST(PreTokenizer, StepsThatTakeTheWholeText) {
  const Pattern number = Pattern::regex(R"(\p{N})", "test");
  const PreTokenizer mixed(
      {SplitByPattern{number}, SplitByClass{is_punctuation, SplitBehavior::kMergedWithPrevious},
       MetaspaceWords{.replacement = "_"}, SplitByPattern{Pattern::literal("_")}});
  EXPECT_EQ(cut(mixed, "a b1,!c"),
            (Words{"_", "a", "_", "b", "_", "1", "_", ",", "_", "!", "_", "c"}));
  EXPECT_EQ(cut(mixed, ""), Words{});
  std::string text;
  Words expected;
  for (int i = 0; i < 2000; ++i) {
    text += " b";
    expected.insert(expected.end(), {"_", "b"});
  }
  EXPECT_TRUE(cut(mixed, text) == expected);
}

}  // namespace
}  // namespace outrider
