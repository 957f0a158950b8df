// SPDX-License-Identifier: Apache-2.0
// Unicode's normal forms (NFC, NFD, NFKC, NFKD) of long texts. Most texts are mostly normalised
// already. Only stretches, short ranges of characters that may change, combine or be reordered, go
// through bring_to_form() of unicode_form.h. Thread-safe.
#ifndef OUTRIDER_TOKENIZER_TEXTS_FORM_STRETCHES_H_
#define OUTRIDER_TOKENIZER_TEXTS_FORM_STRETCHES_H_

#include <string>

#include "tokenizer/texts/normalizer.h"

namespace outrider {

// Brings `text` (well-formed UTF-8) to the form in place, with the result of bring_to_form(). Adds
// the changes, in the order of the text, to `edits` if that is not null; it must be empty before.
// The first call for a form takes some milliseconds if the text is not all ASCII.
void bring_stretches_to_form(const UnicodeForm& form, std::string& text, TextEdits* edits);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_TEXTS_FORM_STRETCHES_H_
