// SPDX-License-Identifier: Apache-2.0
// Patterns that cut or rewrite text: PCRE2, compiled just in time if the machine allows it, or a
// hand-written scanner if there is one for the pattern's text (pattern_scanner.h). Immutable once
// compiled; searches are thread-safe as long as each thread has its own MatchScratch.
#ifndef OUTRIDER_TOKENIZER_PATTERNS_PATTERN_H_
#define OUTRIDER_TOKENIZER_PATTERNS_PATTERN_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/types.h"
#include "tokenizer/patterns/pattern_scanner.h"

namespace outrider {

// Working memory for patterns in one encode(); reused from match to match.
class MatchScratch {
 public:
  MatchScratch();
  ~MatchScratch();
  MatchScratch(const MatchScratch&) = delete;
  MatchScratch& operator=(const MatchScratch&) = delete;

 private:
  friend class Pattern;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class Pattern {
 public:
  // A pattern in the dialect of tokenizer.json, Oniguruma's Ruby syntax. Throws Error, with
  // `object`, if it is invalid or uses features without an equivalent in PCRE2.
  static Pattern regex(std::string_view pattern, std::string_view object);
  static Pattern literal(std::string_view text);

  // Replaces `matches` by all non-overlapping matches in `text` (well-formed UTF-8), from left to
  // right. An empty match directly after another match does not count. Throws Error if the pattern
  // exceeds its limits: from each position, a number of steps linear in the text, and 16 MiB of
  // state. (A malicious pattern is still quadratic; none is exponential.)
  void find_all(std::string_view text, MatchScratch& scratch,
                std::vector<TextRange>& matches) const;
  // The same in parts: replaces `matches` by the next ones, at most n_most, and advances `search`;
  // false if there are no more after them.
  bool find_next(std::string_view text, std::size_t n_max, PatternSearch& search,
                 MatchScratch& scratch, std::vector<TextRange>& matches) const;

 private:
  struct Code;
  bool find_next_compiled(std::string_view text, std::size_t n_max, PatternSearch& search,
                          MatchScratch& scratch, std::vector<TextRange>& matches) const;

  PatternScanner scanner_ = nullptr;
  std::shared_ptr<const Code> code_;  // null with a scanner, and for a literal
  std::string literal_;
};

// The same pattern in PCRE2's dialect (options UTF, UCP, MULTILINE, newline LF). Exposed for tests.
std::string translate_pattern(std::string_view pattern, std::string_view object);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_PATTERNS_PATTERN_H_
