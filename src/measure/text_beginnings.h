// Beginnings of texts, for measurements on what a user's models really read.
#ifndef OUTRIDER_MEASURE_TEXT_BEGINNINGS_H_
#define OUTRIDER_MEASURE_TEXT_BEGINNINGS_H_

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "outrider/model.h"
#include "outrider/tokenizer.h"
#include "outrider/types.h"

namespace outrider {

// The first n_tokens tokens, those the tokenizer puts before a text counted, of n_texts places in
// the texts: of documents, and of every piece that a long one is cut into (text_documents.h),
// evenly chosen from all; those too short are replaced by others. `operation` is named in errors.
// Throws Error where texts cannot be read or have fewer such places.
std::vector<std::vector<TokenId>> text_beginnings(const Tokenizer& tokenizer,
                                                  std::span<const std::filesystem::path> texts,
                                                  const std::string& separator, int n_texts,
                                                  int n_tokens, const char* operation);

// Throws UsageError unless a pass over n_rows behind n_context tokens fits the model's context:
// what follows from texts is to be refused before they are worked on.
void require_room(const Model& model, int n_context, int n_rows, const char* operation);

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_TEXT_BEGINNINGS_H_
