// What a rewriting changed in a text: some stretches, each with what became of it; everything
// between them is the same in both texts. Either text is at most 2^32 bytes long. Thread-safe to
// read.
#ifndef OUTRIDER_TOKENIZER_TEXT_EDITS_H_
#define OUTRIDER_TOKENIZER_TEXT_EDITS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "outrider/types.h"

namespace outrider {

class TextEdits {
 public:
  // `before` became `after`; one of the two may be empty. In the order of the texts.
  void add(const TextRange& before, const TextRange& after);
  // The text after, which all edits are known of, loses its end: n_after bytes of it stay. The text
  // before has n_before.
  void cut_after(std::size_t n_before, std::size_t n_after);

  // The other text's part that a range (not empty) became, or came of. Of a changed stretch that it
  // cuts it gets all. What was put in just before the range belongs to it, what was put in behind
  // it and what was dropped on either side does not. May be empty.
  TextRange to_after(const TextRange& range) const;
  TextRange to_before(const TextRange& range) const;

 private:
  struct Edit {  // 32 bits: some normalisers change every character
    std::uint32_t before_begin, before_end, after_begin, after_end;
  };
  std::vector<Edit> edits_;
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_TEXT_EDITS_H_
