// Two tokenizers' vocabularies beside each other.
#ifndef OUTRIDER_TOKENIZER_TRANSLATE_VOCABULARY_H_
#define OUTRIDER_TOKENIZER_TRANSLATE_VOCABULARY_H_

#include <memory>
#include <vector>

#include "base/vocabulary_translation.h"
#include "outrider/tokenizer.h"
#include "outrider/types.h"

namespace outrider {

// A model's side of a translation.
struct VocabularySide {
  std::shared_ptr<const Tokenizer> tokenizer;  // never null
  int n_rows = 0;                              // of its matrices; may be more than it has tokens
  std::vector<TokenId> ends = {};              // tokens that end its texts, the usual one first
};

// Tokens are shared by their bytes; special tokens by their spelling, if they are special on both
// sides; the first end of one side with the first of the other. Where several tokens of a side have
// the same bytes, the first whole one counts, before the spelling of a single byte; where both
// sides have such a spelling beside a piece, these are shared, too. What the target does not share
// is spelled in the drafter's longest pieces from left to right; what cannot be spelled at all, in
// a blank or, failing that, the drafter's token 0.
VocabularyTranslation translate_vocabulary(const VocabularySide& target,
                                           const VocabularySide& drafter);

// How many of the target's tokens a translation shares.
int n_shared(const VocabularyTranslation& translation);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_TRANSLATE_VOCABULARY_H_
