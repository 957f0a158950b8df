// What a SentencePiece model does to a text before it looks for pieces (NormalizerSpec of
// sentencepiece_model.proto, as src/normalizer.cc of SentencePiece 0.2 goes by it). Immutable,
// thread-safe.
#ifndef OUTRIDER_TOKENIZER_SENTENCEPIECE_RULES_H_
#define OUTRIDER_TOKENIZER_SENTENCEPIECE_RULES_H_

#include <cstddef>
#include <memory>
#include <string>

#include "tokenizer/charsmap.h"
#include "tokenizer/piece_trie.h"
#include "tokenizer/text_edits.h"

namespace outrider {

struct SentencePieceRules {
  std::shared_ptr<const Charsmap> map;       // the longest rule at each place; null: none
  std::shared_ptr<const PieceTrie> symbols;  // left as they stand, before any rule; null: none
  bool add_blank = true;                     // one before every text, ...
  bool blank_is_suffix = false;              // ... or one behind it
  bool single_blanks = true;                 // of several in a row, and none at either end
  bool mark_blanks = true;                   // they become U+2581
};

// Rewrites `text` (well-formed UTF-8, and so it stays). Throws Error if more than most_bytes would
// come of it. Adds what changed to `edits`, if that is not null.
void apply_rules(const SentencePieceRules& rules, std::string& text, std::size_t most_bytes,
                 TextEdits* edits = nullptr);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_SENTENCEPIECE_RULES_H_
