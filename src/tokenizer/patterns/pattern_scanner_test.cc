// SPDX-License-Identifier: Apache-2.0
// Compares the scanners with PCRE2 on random strings: the same pattern within (?:...) has no
// scanner.
#include "tokenizer/patterns/pattern_scanner.h"

#include <gtest/gtest.h>

#include <iterator>
#include <random>
#include <string>

#include "outrider/error.h"
#include "tokenizer/patterns/character_class.h"
#include "tokenizer/patterns/cutting_patterns.h"
#include "tokenizer/patterns/pattern.h"
#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

using Ranges = std::vector<TextRange>;

Pattern compiled(std::string_view pattern) {
  std::string wrapped = "(?:";
  wrapped.append(pattern).append(")");
  EXPECT_EQ(find_scanner(wrapped), nullptr);
  return Pattern::regex(wrapped, "test");
}

std::string show(const std::string& text, const Ranges& ranges) {
  std::string shown;
  for (const TextRange& range : ranges) {
    shown += "[" + text.substr(range.begin, range.end - range.begin) + "]";
  }
  return shown;
}

// Characters of all classes that patterns distinguish, and arbitrary ones.
std::string random_character(std::mt19937& random) {
  constexpr std::string_view kSpecial[] = {
      "'",      "'s",         "'S",         "'\u017f",    "'t",        "'re",    "'RE",    "'vE",
      "'ll",    "'Ll",        "'l",         "'d",         "'M",        "s",      "\u017f", "\u212a",
      "\u02bc", "A",          "Z",          "a",          "z",         "\u00c9", "\u00e9", "\u01c5",
      "\u02b0", "\u4e2d",     "\u3042",     "\u0301",     "\u0940",    "\u20dd", "0",      "7",
      "\u0663", "\u00b2",     "\u2167",     "\u3007",     " ",         "  ",     "\t",     "\n",
      "\r",     "\r\n",       "\u0085",     "\u00a0",     "\u2028",    "\u3000", "/",      "!",
      "-",      "\u3002",     "\u20ac",     "\u200d",     "\u180e",    "\u0378", "\ue000", "_",
      "\u2160", "\U0001f44d", "\U0001d400", "\U000e0100", "\U00020000"};
  std::string text;
  if (random() % 8 != 0) {
    text = kSpecial[random() % std::size(kSpecial)];
  } else {
    char32_t value = static_cast<char32_t>(random()) % (random() % 2 == 0 ? 0x500 : 0x32000);
    if (value >= 0xD800 && value <= 0xDFFF) value = 'x';
    append_utf8(value, text);
  }
  return text;
}

std::string random_text(std::mt19937& random) {
  std::string text;
  for (std::size_t i = random() % 24 + 1; i > 0; --i) {
    const std::string character = random_character(random);
    // Sometimes a run, so that numbers and blanks have more than one end.
    for (std::size_t n = random() % 6 == 0 ? random() % 9 + 1 : 1; n > 0; --n) text += character;
  }
  return text;
}

void expect_same(std::string_view pattern, const Pattern& expected, const std::string& text,
                 std::size_t n_max) {
  MatchScratch scratch;
  Ranges of_pcre;
  expected.find_all(text, scratch, of_pcre);
  const Pattern scanned = Pattern::regex(pattern, "test");
  Ranges found;
  Ranges part;
  PatternSearch search;
  for (bool more = true; more;) {
    more = scanned.find_next(text, n_max, search, scratch, part);
    ASSERT_LE(part.size(), n_max);
    found.insert(found.end(), part.begin(), part.end());
  }
  ASSERT_TRUE(found == of_pcre) << pattern << "\n"
                                << show(text, found) << "\n"
                                << show(text, of_pcre);
}

std::vector<KnownScanner> all_scanners() {
  std::vector<KnownScanner> all = word_scanners();
  for (const KnownScanner& one : threes_scanners()) all.push_back(one);
  return all;
}

TEST(PatternScanner, FindsWhatPcre2Finds) {
  for (const KnownScanner& one : all_scanners()) {
    ASSERT_EQ(find_scanner(one.pattern), one.scanner);
    const Pattern expected = compiled(one.pattern);
    std::mt19937 random(10);
    for (int round = 0; round < 4000; ++round) {
      expect_same(one.pattern, expected, random_text(random), random() % 4 + 1);
    }
  }
}

// Hundreds of blanks, before a word, a line end and the end.
TEST(PatternScanner, LongRuns) {
  for (const KnownScanner& one : all_scanners()) {
    const Pattern expected = compiled(one.pattern);
    std::mt19937 random(11);
    for (int round = 0; round < 60; ++round) {
      std::string text;
      for (std::size_t i = random() % 4 + 1; i > 0; --i) {
        text += std::string(random() % 1100, random() % 3 == 0 ? '7' : ' ');
        text += random_character(random);
      }
      expect_same(one.pattern, expected, text, random() % 4 + 1);
    }
  }
}

// Patterns that are rewritten so that no text makes them slow.
TEST(PatternScanner, RewrittenPatternsMatchAlike) {
  const std::string exaone =
      R"('(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+)"
      R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]+|\s+(?!\S)|\s+)";
  const std::pair<std::string_view, Pattern> cases[] = {
      {cut::kJsonSpacesAtEnd, compiled(cut::kJsonSpacesAtEnd)},
      {cut::kSpacesAtEnd, compiled(cut::kJsonSpacesAtEnd)},
      {cut::kExaoneMoe, compiled(exaone)}};
  for (const auto& [pattern, expected] : cases) {
    std::mt19937 random(12);
    for (int round = 0; round < 6000; ++round) {
      expect_same(pattern, expected, random_text(random), random() % 4 + 1);
    }
  }
}

// Texts that make these patterns backtrack if compiled unchanged: even half a million characters
// would exceed the test's time limit, and these have four million.
TEST(PatternScanner, NoTextIsSlow) {
  constexpr std::size_t kBytes = 4000000;
  std::vector<std::string_view> patterns = {cut::kJsonSpacesAtEnd, cut::kSpacesAtEnd,
                                            cut::kExaoneMoe};
  for (const KnownScanner& one : all_scanners()) patterns.push_back(one.pattern);
  std::string words;
  std::string capitals;
  while (words.size() < kBytes) words += "a ";
  while (capitals.size() < kBytes) capitals += "\u0301ABC";
  const std::string texts[] = {std::string(kBytes, ' ') + "a",
                               "\n" + std::string(kBytes, ' '),
                               std::string(kBytes, '\n'),
                               std::string(kBytes, '7'),
                               std::string(kBytes, '7') + "a",
                               std::string(kBytes, 'a'),
                               std::string(kBytes, 'A'),
                               std::string(kBytes, '\''),
                               std::string(kBytes, '!') + " ",
                               words,
                               capitals};
  MatchScratch scratch;
  Ranges matches;
  for (const std::string_view pattern : patterns) {
    for (const std::string& text : texts) {
      Pattern::regex(pattern, "test").find_all(text, scratch, matches);
      for (const TextRange& match : matches) ASSERT_LE(match.end, text.size());
    }
  }
}

TEST(CharacterClass, IsAsPcre2HasIt) {
  const std::pair<const char*, std::uint16_t> classes[] = {
      {R"(\p{L})", kLetter}, {R"([\p{Lu}\p{Lt}])", kCapital}, {R"(\p{Ll})", kSmall},
      {R"(\p{M})", kMark},   {R"(\p{N})", kNumber},           {R"(\d)", kDigit},
      {R"(\s)", kBlank},     {R"([\r\n])", kLineEnd},         {R"(\w)", kInWord}};
  MatchScratch scratch;
  Ranges matches;
  for (const auto& [text_of_class, bit] : classes) {
    const Pattern pattern = Pattern::regex(text_of_class, "test");
    for (char32_t value = 0; value < 0x110000; value += value < 0x32000 ? 1 : 61) {
      if (value >= 0xD800 && value <= 0xDFFF) continue;
      std::string text;
      append_utf8(value, text);
      pattern.find_all(text, scratch, matches);
      const ClassifiedCharacter character = classify(text, 0);
      ASSERT_EQ((character.classes & bit) != 0, !matches.empty())
          << text_of_class << " " << static_cast<std::uint32_t>(value);
      ASSERT_EQ(character.n_bytes, text.size());
    }
  }
}

}  // namespace
}  // namespace outrider
