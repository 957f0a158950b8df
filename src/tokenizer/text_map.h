// Where the bytes of a text are after it was repaired or normalised: for ranges that are known in
// the one and needed in the other. Thread-safe to read.
#ifndef OUTRIDER_TOKENIZER_TEXT_MAP_H_
#define OUTRIDER_TOKENIZER_TEXT_MAP_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/normalizer.h"
#include "tokenizer/pattern.h"

namespace outrider {

// Throws Error unless `ranges` are in order, apart and within a text of n_bytes.
void require_ranges(std::span<const TextRange> ranges, std::size_t n_bytes);

// repair_utf8(), and which bytes became which. A range that cuts a bad subsequence takes all of it.
class RepairedText {
 public:
  explicit RepairedText(std::string_view text);
  const std::string& text() const { return text_; }
  TextRange to_repaired(const TextRange& range) const;
  TextRange to_original(const TextRange& range) const;

 private:
  struct Bad {
    TextRange original;
    TextRange repaired;
  };
  std::string text_;
  std::vector<Bad> bad_;
};

// Which bytes of a normalised text come of which of the text before. Normalisers do not tell; this
// compares with what they make of the text's beginnings and ends, and where that leaves a doubt a
// range is too long rather than too short.
class NormalizedText {
 public:
  // `normalizer` must outlive this; `normalized` is what it makes of `text`.
  NormalizedText(const Normalizer& normalizer, std::string_view text, std::string_view normalized)
      : normalizer_(normalizer), text_(text), normalized_(normalized) {}
  TextRange to_normalized(const TextRange& range, MatchScratch& scratch) const;
  TextRange to_original(const TextRange& range, MatchScratch& scratch) const;

 private:
  // How much of the normalised text the first (the last) bytes of the text settle.
  std::size_t settled_by_first(std::size_t n_bytes, MatchScratch& scratch) const;
  std::size_t settled_by_last(std::size_t n_bytes, MatchScratch& scratch) const;

  const Normalizer& normalizer_;
  std::string_view text_;
  std::string_view normalized_;
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_TEXT_MAP_H_
