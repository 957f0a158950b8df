// SPDX-License-Identifier: Apache-2.0
// Compares the vocabularies of two tokenizers.
#ifndef OUTRIDER_TOKENIZER_SAME_VOCABULARY_H_
#define OUTRIDER_TOKENIZER_SAME_VOCABULARY_H_

#include <cstdint>
#include <string_view>

#include "base/vocabulary_id.h"
#include "outrider/tokenizer.h"

namespace outrider {

// Throws Error(operation, object, ...) with the first id at which `other` differs from `expected`,
// or the two sizes. Merges and normalisers are not compared: they determine how text is cut, not
// the meaning of an id. The message ends with the advice, if any.
void require_same_vocabulary(const Tokenizer& expected, const Tokenizer& other,
                             std::string_view operation, std::string_view object,
                             std::string_view advice = {});

// The same comparison for files that hold ids and no tokenizer: equal if require_same_vocabulary()
// throws nothing and, except with a probability of about 2^-64, only then. Stored in files, so it
// must not change.
VocabularyId vocabulary_id(const Tokenizer& tokenizer);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_SAME_VOCABULARY_H_
