// SPDX-License-Identifier: Apache-2.0
// Hand-written searches for the cutting patterns of most tokenizers: the same matches as PCRE2, in
// a fraction of its time, and linear in any text. Thread-safe.
#ifndef OUTRIDER_TOKENIZER_PATTERNS_PATTERN_SCANNER_H_
#define OUTRIDER_TOKENIZER_PATTERNS_PATTERN_SCANNER_H_

#include <cstddef>
#include <string_view>
#include <vector>

#include "outrider/types.h"

namespace outrider {

// The state of a search through a text.
struct PatternSearch {
  static constexpr std::size_t kNowhere = std::string_view::npos;
  std::size_t at = 0;               // where to continue
  std::size_t last_end = kNowhere;  // end of the previous match
  // The scanner's state: the current run of characters, so that it searches for the run's end only
  // once.
  std::size_t run_end = 0;
  std::size_t n_left = 0;  // characters of the run
};

// Appends the next matches in `text` (well-formed UTF-8, not empty), at most n_most; false if there
// are no more.
using PatternScanner = bool (*)(std::string_view text, std::size_t n_max, PatternSearch& search,
                                std::vector<TextRange>& matches);

// The scanner for a pattern in the dialect of tokenizer.json, by its text; null if there is none.
PatternScanner find_scanner(std::string_view pattern);

// One of each kind: GPT-2's words and similar ones; digits in threes from the right.
struct KnownScanner {
  std::string_view pattern;
  PatternScanner scanner;
};
std::vector<KnownScanner> word_scanners();
std::vector<KnownScanner> threes_scanners();

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_PATTERNS_PATTERN_SCANNER_H_
