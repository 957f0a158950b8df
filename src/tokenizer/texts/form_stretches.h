// SPDX-License-Identifier: Apache-2.0
// Unicode's normal forms of long texts. Most texts are mostly normalised already: only stretches of
// characters that may change, combine or be reordered go through bring_to_form(). Thread-safe.
#ifndef OUTRIDER_TOKENIZER_TEXTS_FORM_STRETCHES_H_
#define OUTRIDER_TOKENIZER_TEXTS_FORM_STRETCHES_H_

#include <string>

#include "tokenizer/texts/normalizer.h"

namespace outrider {

// As bring_to_form(). Adds the changes to `edits`, if not null. The first call for a form takes
// some milliseconds if the text is not all ASCII.
void bring_stretches_to_form(const UnicodeForm& form, std::string& text, TextEdits* edits);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_TEXTS_FORM_STRETCHES_H_
