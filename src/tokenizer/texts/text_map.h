// SPDX-License-Identifier: Apache-2.0
// Maps byte ranges between a text and its repaired or normalised form. Thread-safe to read.
#ifndef OUTRIDER_TOKENIZER_TEXTS_TEXT_MAP_H_
#define OUTRIDER_TOKENIZER_TEXTS_TEXT_MAP_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/patterns/pattern.h"
#include "tokenizer/texts/normalizer.h"

namespace outrider {

// Throws Error unless `ranges` are ascending, disjoint and within a text of n_bytes.
void require_ranges(std::span<const TextRange> ranges, std::size_t n_bytes);

// repair_utf8() with the mapping of bytes. A range that covers a part of a bad subsequence covers
// all of it.
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

// Maps between a normalised text and the text before. Characters that the normaliser changed
// together are mapped as a whole.
class NormalizedText {
 public:
  // Normalises `text`.
  NormalizedText(const Normalizer& normalizer, std::string_view text, MatchScratch& scratch);
  // A partially covered character counts whole; the range must not be empty. The result may be
  // empty.
  TextRange to_normalized(const TextRange& range) const;
  // For text without an original character, the character after it.
  TextRange to_original(const TextRange& range) const;

 private:
  std::string_view text_;
  std::vector<TextEdits> steps_;
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_TEXTS_TEXT_MAP_H_
