// Unicode's normal forms of long texts. Most of most texts is in its form already: a stretch of
// characters that may change, or join or change places with each other, goes through
// bring_to_form(), and nothing else does. Thread-safe.
#ifndef OUTRIDER_TOKENIZER_FORM_STRETCHES_H_
#define OUTRIDER_TOKENIZER_FORM_STRETCHES_H_

#include <string>

#include "tokenizer/normalizer.h"

namespace outrider {

// What bring_to_form() does. Adds what changed to `edits`, if that is not null. The first call for
// a form takes some milliseconds if the text is not all ASCII.
void bring_stretches_to_form(const UnicodeForm& form, std::string& text, TextEdits* edits);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_FORM_STRETCHES_H_
