// SPDX-License-Identifier: Apache-2.0
#include "base/vocabulary_translation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <span>
#include <vector>

namespace outrider {
namespace {

// Words begin with a 0 and are translated into one token each, their number of tokens.
VocabularyTranslation words(int* n_read = nullptr) {
  VocabularyTranslation translation{
      .spelled = {{10}, {11}, {12}}, .shared = {}, .read = {}, .begins_word = {true, false, false}};
  translation.read = [n_read](std::span<const TokenId> tokens, bool at_start) {
    if (n_read != nullptr) *n_read += static_cast<int>(tokens.size());
    std::vector<TokenId> read;
    if (at_start) read.push_back(99);
    for (const TokenId token : tokens) {
      if (token == 0 || read.empty() || read.back() == 99) read.push_back(1000);
      ++read.back();
    }
    return read;
  };
  return translation;
}

std::vector<TokenId> some_text(std::size_t n) {
  std::mt19937 random(3);
  std::vector<TokenId> tokens(n);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 3);
  return tokens;
}

TEST(TranslatedText, GrowingItIsWhatItIsAtOnce) {
  const std::vector<TokenId> tokens = some_text(1000);
  int n_read = 0;
  const VocabularyTranslation translation = words(&n_read);
  TranslatedText text;
  std::size_t n = 0;
  int n_rounds = 0;
  for (std::size_t step = 1; n < tokens.size(); step = step % 7 + 1) {
    n = std::min(n + step, tokens.size());
    const std::span<const TokenId> now(tokens.data(), n);
    const int max_tokens = text.max_tokens(translation, now);
    ASSERT_EQ(text.update(translation, now), words().read(now, true)) << n;
    EXPECT_LE(static_cast<int>(words().read(now, true).size()), max_tokens);
    ++n_rounds;
  }
  // Reads far less than half of the text each time.
  EXPECT_LT(n_read, n_rounds * 200);
}

// Even without a blank a step's cost is bounded, and no token is lost or repeated.
TEST(TranslatedText, ATextWithoutBlanksIsCutSomewhere) {
  const std::vector<TokenId> tokens(5000, 1);
  int n_read = 0;
  const VocabularyTranslation translation = words(&n_read);
  TranslatedText text;
  for (std::size_t n = 1; n <= tokens.size(); ++n) {
    const std::span<const TokenId> now(tokens.data(), n);
    const int max_tokens = text.max_tokens(translation, now);
    const std::vector<TokenId>& read = text.update(translation, now);
    ASSERT_LE(static_cast<int>(read.size()), max_tokens);
    int n_told = 0;
    for (const TokenId token : read) n_told += token == 99 ? 0 : token - 1000;
    ASSERT_EQ(n_told, static_cast<int>(n));
  }
  EXPECT_LT(n_read, 5000 * 400);
}

TEST(TranslatedText, CutBackItGoesOnOtherwise) {
  const VocabularyTranslation translation = words();
  std::vector<TokenId> tokens = some_text(400);
  TranslatedText text;
  text.update(translation, tokens);
  text.update(translation, tokens);
  for (const std::size_t left : {390u, 300u, 20u, 0u}) {
    tokens.resize(left);
    text.truncate(left);
    for (std::size_t i = 0; i < 50; ++i) tokens.push_back(static_cast<TokenId>((left + i) % 3));
    EXPECT_EQ(text.update(translation, tokens), words().read(tokens, true)) << left;
  }
}

TEST(VocabularyTranslation, ReadingThatIsLongerThanSpellingIsNotTaken) {
  VocabularyTranslation translation{.spelled = {{5}, {6, 7}}, .shared = {}};
  const std::vector<TokenId> tokens = {0, 1};
  EXPECT_EQ(translation.read_text(tokens, true), (std::vector<TokenId>{5, 6, 7}));
  EXPECT_EQ(translation.max_read(tokens, true), 4);
  EXPECT_EQ(translation.max_read(tokens, false), 3);
  std::vector<TokenId> given = {1, 1, 1, 1};
  translation.read = [&](std::span<const TokenId>, bool) { return given; };
  EXPECT_EQ(translation.read_text(tokens, true), given);
  EXPECT_EQ(translation.read_text(tokens, false), (std::vector<TokenId>{5, 6, 7}));
  given.clear();
  EXPECT_EQ(translation.read_text(tokens, true), (std::vector<TokenId>{5, 6, 7}));
}

}  // namespace
}  // namespace outrider
