// SPDX-License-Identifier: Apache-2.0
// The changes of a rewriting: a list of stretches with their replacements; everything between them
// is equal in both texts. Either text has at most 2^32 bytes. Thread-safe to read.
#ifndef OUTRIDER_TOKENIZER_TEXTS_TEXT_EDITS_H_
#define OUTRIDER_TOKENIZER_TEXTS_TEXT_EDITS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "outrider/types.h"

namespace outrider {

class TextEdits {
 public:
  // `before` became `after`; one of the two may be empty. Added in the order of the texts.
  void add(const TextRange& before, const TextRange& after);
  // Called after all edits: cuts the text after rewriting to its first n_after bytes. The text
  // before has n_before bytes.
  void cut_after(std::size_t n_before, std::size_t n_after);

  // The corresponding range of the other text for a range (not empty). A partially covered stretch
  // counts whole. Text inserted directly before the range is included; text inserted after it, or
  // deleted on either side, is not. May be empty.
  TextRange to_after(const TextRange& range) const;
  TextRange to_before(const TextRange& range) const;

 private:
  struct Edit {  // 32 bits: some normalisers change every character
    std::uint32_t before_begin, before_end, after_begin, after_end;
  };
  std::vector<Edit> edits_;
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_TEXTS_TEXT_EDITS_H_
