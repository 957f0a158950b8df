// SPDX-License-Identifier: Apache-2.0
// Digits in groups of three from the right, as three tokenizers split numbers. As patterns, each
// match would look ahead to its number's end; here that is found once per number.
#include "tokenizer/patterns/character_class.h"
#include "tokenizer/patterns/cutting_patterns.h"
#include "tokenizer/patterns/pattern_scanner.h"

namespace outrider {
namespace {

// The first character from `at` on that is in one of `classes` (or in none of them).
std::size_t find_class(std::string_view text, std::size_t at, std::uint16_t classes) {
  while (at < text.size()) {
    const ClassifiedCharacter character = classify(text, at);
    if ((character.classes & classes) != 0) break;
    at += character.n_bytes;
  }
  return at;
}

std::size_t count_run(std::string_view text, std::size_t at, std::uint16_t classes,
                      std::size_t& n_characters) {
  for (n_characters = 0; at < text.size(); ++n_characters) {
    const ClassifiedCharacter character = classify(text, at);
    if ((character.classes & classes) == 0) break;
    at += character.n_bytes;
  }
  return at;
}

// The end of the first group in the run of n_left digits at `at`: as many digits as groups of three
// leave over, one, two or three.
std::size_t take_group(std::string_view text, std::size_t at, std::size_t& n_left) {
  for (std::size_t n = (n_left - 1) % 3 + 1; n > 0; --n, --n_left) {
    at += classify(text, at).n_bytes;
  }
  return at;
}

bool scan_between_threes(std::string_view text, std::size_t n_max, PatternSearch& search,
                         std::vector<TextRange>& matches) {
  const auto is_digit = [&](std::size_t at) { return text[at] >= '0' && text[at] <= '9'; };
  for (; n_max > 0; --n_max) {
    while (search.at >= search.run_end) {
      std::size_t begin = search.at;
      while (begin < text.size() && !is_digit(begin)) ++begin;
      if (begin == text.size()) return false;
      search.run_end = begin;
      while (search.run_end < text.size() && is_digit(search.run_end)) ++search.run_end;
      search.at = begin + (search.run_end - begin) % 3;
    }
    matches.push_back({search.at, search.at});
    search.at += 3;
  }
  return true;
}

bool scan_numbers_and_text_before(std::string_view text, std::size_t n_max, PatternSearch& search,
                                  std::vector<TextRange>& matches) {
  for (; n_max > 0 && search.at < text.size(); --n_max) {
    const std::size_t begin = search.at;
    if (search.n_left == 0) {
      search.at = find_class(text, begin, kNumber);
      count_run(text, search.at, kNumber, search.n_left);
    }
    if (search.n_left > 0) search.at = take_group(text, search.at, search.n_left);
    matches.push_back({begin, search.at});
  }
  return search.at < text.size();
}

bool scan_threes(std::string_view text, std::size_t n_max, PatternSearch& search,
                 std::vector<TextRange>& matches) {
  for (; n_max > 0; --n_max) {
    while (search.n_left == 0) {
      search.at = find_class(text, search.at, kDigit);
      if (search.at == text.size()) return false;
      const std::size_t end = count_run(text, search.at, kDigit, search.n_left);
      // A number directly followed by a word has no end from which to count.
      if (end < text.size() && (classify(text, end).classes & kInWord) != 0) {
        search.at = end;
        search.n_left = 0;
      }
    }
    const std::size_t begin = search.at;
    search.at = take_group(text, begin, search.n_left);
    matches.push_back({begin, search.at});
  }
  return true;
}

}  // namespace

std::vector<KnownScanner> threes_scanners() {
  return {{cut::kBetweenThrees, scan_between_threes},
          {cut::kNumberAndTextBefore, scan_numbers_and_text_before},
          {cut::kJsonThrees, scan_threes}};
}

}  // namespace outrider
