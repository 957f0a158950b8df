// SPDX-License-Identifier: Apache-2.0
// A SentencePiece model's normalisation of a text before the search for pieces (NormalizerSpec of
// sentencepiece_model.proto, as in src/normalizer.cc of SentencePiece 0.2). Immutable, thread-safe.
#ifndef OUTRIDER_TOKENIZER_FORMATS_SENTENCEPIECE_RULES_H_
#define OUTRIDER_TOKENIZER_FORMATS_SENTENCEPIECE_RULES_H_

#include <cstddef>
#include <memory>
#include <string>

#include "tokenizer/formats/charsmap.h"
#include "tokenizer/merging/piece_trie.h"
#include "tokenizer/texts/text_edits.h"

namespace outrider {

struct SentencePieceRules {
  std::shared_ptr<const Charsmap> map;       // the longest rule at each place; null: none
  std::shared_ptr<const PieceTrie> symbols;  // never rewritten; null: none
  bool add_blank = true;                     // one before every text, ...
  bool blank_is_suffix = false;              // ... or one after it
  bool single_blanks = true;  // merges consecutive blanks, and drops those at both ends
  bool mark_blanks = true;    // blanks become U+2581
};

// Rewrites `text`; input and result are well-formed UTF-8. Throws Error if the result would exceed
// max_bytes. Adds the changes to `edits`, if not null.
void apply_rules(const SentencePieceRules& rules, std::string& text, std::size_t max_bytes,
                 TextEdits* edits = nullptr);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_FORMATS_SENTENCEPIECE_RULES_H_
