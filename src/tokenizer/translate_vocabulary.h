// SPDX-License-Identifier: Apache-2.0
// Matches the vocabularies of two tokenizers.
#ifndef OUTRIDER_TOKENIZER_TRANSLATE_VOCABULARY_H_
#define OUTRIDER_TOKENIZER_TRANSLATE_VOCABULARY_H_

#include <memory>
#include <vector>

#include "base/vocabulary_translation.h"
#include "outrider/tokenizer.h"
#include "outrider/types.h"

namespace outrider {

// One model's side of a translation.
struct VocabularySide {
  std::shared_ptr<const Tokenizer> tokenizer;  // never null
  int n_rows = 0;                              // of its matrices; may exceed the number of tokens
  std::vector<TokenId> ends = {};              // tokens that end its texts, the usual one first
};

// Tokens are shared by their bytes; special tokens by their spelling, if they are special on both
// sides; the first end of one side with the first of the other. If several tokens of a side have
// the same bytes, the first piece counts, before the token of a single byte; if both sides have
// such a byte token besides a piece, these are shared, too. Target tokens that are not shared are
// spelled in the drafter's longest pieces from left to right. Tokens that cannot be spelled become
// a blank or, without one, the drafter's token 0.
VocabularyTranslation translate_vocabulary(const VocabularySide& target,
                                           const VocabularySide& drafter);

// The number of the target's tokens that a translation shares.
int n_shared(const VocabularyTranslation& translation);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_TRANSLATE_VOCABULARY_H_
