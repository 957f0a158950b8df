// SPDX-License-Identifier: Apache-2.0
// Cuts normalised text into the words that are merged separately. A list of steps; each works on
// every piece left by the steps before it, and some rewrite the text. A PreTokenizer is immutable
// and thread-safe; a Cutting is one thread's pass through one text, some hundred words at a time.
#ifndef OUTRIDER_TOKENIZER_PATTERNS_PRE_TOKENIZER_H_
#define OUTRIDER_TOKENIZER_PATTERNS_PRE_TOKENIZER_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tokenizer/patterns/pattern.h"

namespace outrider {

// What happens to the matches of a pattern (and, if they are merged, to the text between them).
enum class SplitBehavior { kIsolated, kRemoved, kContiguous, kMergedWithPrevious, kMergedWithNext };

struct SplitByPattern {
  Pattern pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;  // the text between matches is the match
};
// The same for single characters of a class.
struct SplitByClass {
  bool (*contains)(char32_t) = nullptr;
  SplitBehavior behavior = SplitBehavior::kIsolated;
};
struct SplitWords {};  // words of \w, words of [^\w\s]; drops white space
struct ByteLevelWords {
  bool add_prefix_space = true;
  bool use_regex = true;
  Pattern pattern;  // GPT-2's, if use_regex
};
struct MetaspaceWords {
  enum class Prepend { kAlways, kFirst, kNever };
  std::string replacement;  // one character, for ' '
  Prepend prepend = Prepend::kAlways;
  bool split = true;
};

using PreTokenizerStep =
    std::variant<SplitByPattern, SplitByClass, SplitWords, ByteLevelWords, MetaspaceWords>;

class PreTokenizer {
 public:
  PreTokenizer() = default;
  explicit PreTokenizer(std::vector<PreTokenizerStep> steps);
  // Whether words are raw bytes, each of which stands for its character of the byte-level alphabet;
  // otherwise words are spelled in that alphabet already if a step asks for it.
  bool words_are_bytes() const { return words_are_bytes_; }

 private:
  friend class Cutting;
  std::vector<PreTokenizerStep> steps_;
  bool words_are_bytes_ = false;
};

class Cutting {
 public:
  // `pre_tokenizer` and `text` must outlive the cutting. at_start: the text is the beginning of
  // encode()'s input.
  void start(const PreTokenizer& pre_tokenizer, std::string_view text, bool at_start);
  // The next words as ranges of text(), in order, none empty; empty at the end. Valid until the
  // next call.
  std::span<const TextRange> next(MatchScratch& scratch);
  std::string_view text() const { return stages_[n_steps_].text; }

 private:
  // The result of one step, or the text itself.
  struct Stage {
    std::string_view text;  // pieces are ranges of it
    std::string rewritten;  // its storage, if the step rewrote it
    std::vector<TextRange> pieces;
    std::size_t n_taken = 0;  // pieces passed to the next step
    // Some steps cut a piece in parts: the current piece, and the position in it.
    bool in_piece = false;
    TextRange piece{};
    PatternSearch search;
    std::size_t done = 0;
  };
  bool fill(std::size_t i, MatchScratch& scratch);
  void fill_by_parts(std::size_t i, MatchScratch& scratch);
  void cut_part(const SplitByPattern& split, Stage& stage, MatchScratch& scratch);
  void cut_part(const SplitByClass& split, Stage& stage, MatchScratch& scratch);

  const PreTokenizer* pre_tokenizer_ = nullptr;
  std::size_t n_steps_ = 0;
  bool at_start_ = false;
  bool is_started_ = false;
  std::vector<Stage> stages_;  // 0: the text; i + 1: after step i
  std::vector<TextRange> matches_;
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_PATTERNS_PRE_TOKENIZER_H_
