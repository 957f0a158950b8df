// Beginnings of texts, for measurements on what a user's models really read.
#ifndef OUTRIDER_MEASURE_TEXT_BEGINNINGS_H_
#define OUTRIDER_MEASURE_TEXT_BEGINNINGS_H_

#include <cstdint>
#include <vector>

#include "outrider/model.h"
#include "outrider/tokenizer.h"
#include "outrider/tune.h"
#include "outrider/types.h"

namespace outrider {

// Throws UsageError, which names `operation`, for counts below 1, for continuations of fewer than
// least_tokens, and where a pass over n_rows behind half a continuation does not fit the model's
// context: before the texts are worked on.
void check_texts(const Model& model, const ContinuedTexts& texts, int least_tokens, int n_rows,
                 const char* operation);

// Tokens in the middle of the continuations: what passes are timed behind.
std::int64_t middle_of(const ContinuedTexts& texts);

// The first tokens, those the tokenizer puts before a text counted, of places in the texts: of
// documents, and of every piece that a long one is cut into (text_documents.h), evenly chosen from
// all; those too short are replaced by others. Pieces are as long as they may be for so many
// places, so that a text of a few pages will do. `operation` is named in errors.
// Throws Error where texts cannot be read or have fewer such places.
std::vector<std::vector<TokenId>> text_beginnings(const Tokenizer& tokenizer,
                                                  const ContinuedTexts& texts,
                                                  const char* operation);

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_TEXT_BEGINNINGS_H_
