// Whether two tokenizers mean the same by their ids.
#ifndef OUTRIDER_TOKENIZER_SAME_VOCABULARY_H_
#define OUTRIDER_TOKENIZER_SAME_VOCABULARY_H_

#include <cstdint>
#include <string_view>

#include "base/vocabulary_id.h"
#include "outrider/tokenizer.h"

namespace outrider {

// Throws Error(operation, object, ...) naming the first id at which `other` differs from
// `expected`, or the two sizes. Merges and normalisers are not compared: they decide how text is
// cut, not what an id means. The message ends with the advice, if there is any.
void require_same_vocabulary(const Tokenizer& expected, const Tokenizer& other,
                             std::string_view operation, std::string_view object,
                             std::string_view advice = {});

// The same question of files that hold ids and no tokenizer: equal where require_same_vocabulary()
// throws nothing and, but for a chance of about 2^-64, nowhere else. Kept in files: it may not
// change.
VocabularyId vocabulary_id(const Tokenizer& tokenizer);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_SAME_VOCABULARY_H_
