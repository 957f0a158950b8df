// SPDX-License-Identifier: Apache-2.0
// Beginnings of texts, for measurements on the user's kind of text.
#ifndef OUTRIDER_MEASURE_TEXT_BEGINNINGS_H_
#define OUTRIDER_MEASURE_TEXT_BEGINNINGS_H_

#include <cstdint>
#include <vector>

#include "outrider/model.h"
#include "outrider/tokenizer.h"
#include "outrider/tune.h"
#include "outrider/types.h"

namespace outrider {

// Throws UsageError, with `operation`, for counts below 1, for continuations of fewer than
// min_tokens, and if a pass over n_rows after half a continuation exceeds the model's context.
// Call it before working on the texts.
void check_texts(const Model& model, const ContinuedTexts& texts, int min_tokens, int n_rows,
                 const char* operation);

// Tokens at the middle of the continuations: the context of timed passes.
std::int64_t middle_of(const ContinuedTexts& texts);

// The first tokens, including those that the tokenizer puts before a text, of places in the texts:
// of documents, and of the pieces of long ones (text_documents.h), evenly chosen from all. Places
// that are too short are replaced by others. Pieces are as long as possible for that many places,
// so a text of a few pages suffices. `operation` is named in errors. Throws Error if texts cannot
// be read or have fewer such places.
std::vector<std::vector<TokenId>> text_beginnings(const Tokenizer& tokenizer,
                                                  const ContinuedTexts& texts,
                                                  const char* operation);

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_TEXT_BEGINNINGS_H_
