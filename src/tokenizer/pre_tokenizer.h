// Cuts normalised text into the words that are merged separately. A list of steps; each works on
// every piece the steps before it left, and some rewrite the text. Immutable, thread-safe.
#ifndef OUTRIDER_TOKENIZER_PRE_TOKENIZER_H_
#define OUTRIDER_TOKENIZER_PRE_TOKENIZER_H_

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tokenizer/pattern.h"

namespace outrider {

// What becomes of the matches of a pattern (and, where they are merged, of what stands between).
enum class SplitBehavior { kIsolated, kRemoved, kContiguous, kMergedWithPrevious, kMergedWithNext };

struct SplitByPattern {
  Pattern pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;  // what stands between matches is the match
};
// The same for single characters of a class.
struct SplitByClass {
  bool (*contains)(char32_t) = nullptr;
  SplitBehavior behavior = SplitBehavior::kIsolated;
};
struct SplitWords {};  // words of \w, words of [^\w\s]; white space goes away
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

// Text and the pieces of it that are left, in order, none empty.
struct CutText {
  std::string text;
  std::vector<TextRange> pieces;
  bool at_start = false;  // the text is the beginning of what was given to encode()
};

class PreTokenizer {
 public:
  PreTokenizer() = default;
  explicit PreTokenizer(std::vector<PreTokenizerStep> steps) : steps_(std::move(steps)) {}
  // `cut` holds the text as one piece.
  void apply(CutText& cut, MatchScratch& scratch) const;

 private:
  std::vector<PreTokenizerStep> steps_;
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_PRE_TOKENIZER_H_
