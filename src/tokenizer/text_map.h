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

// Which bytes of a normalised text come of which of the text before. A range of characters that the
// normaliser changed together is got, or given, as a whole.
class NormalizedText {
 public:
  // Normalises `text`.
  NormalizedText(const Normalizer& normalizer, std::string_view text, MatchScratch& scratch);
  // Of a range (not empty) that cuts a character all of it counts. May be empty.
  TextRange to_normalized(const TextRange& range) const;
  // Of what came of no character at all, the one behind it.
  TextRange to_original(const TextRange& range) const;

 private:
  std::string_view text_;
  std::vector<TextEdits> steps_;
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_TEXT_MAP_H_
