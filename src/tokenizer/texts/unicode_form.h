// SPDX-License-Identifier: Apache-2.0
// Unicode's normal forms of a text, as in Hugging Face's tokenizers: by Unicode 9, so that newer
// characters are unchanged and keep their places. Thread-safe.
#ifndef OUTRIDER_TOKENIZER_TEXTS_UNICODE_FORM_H_
#define OUTRIDER_TOKENIZER_TEXTS_UNICODE_FORM_H_

#include <string>

#include "tokenizer/texts/normalizer.h"

namespace outrider {

// Whether a normal form would change, reorder or compose a character if it were not newer than
// Unicode 9. The text before and after such a character is normalised separately.
bool is_newer_than_forms(char32_t value);

// Brings `text` (well-formed UTF-8) to the form.
void bring_to_form(const UnicodeForm& form, std::string& text);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_TEXTS_UNICODE_FORM_H_
