// Unicode's normal forms of a text, as Hugging Face's tokenizers have them: by Unicode 9, so that
// characters that are newer stay as they are and keep their places. Thread-safe.
#ifndef OUTRIDER_TOKENIZER_UNICODE_FORM_H_
#define OUTRIDER_TOKENIZER_UNICODE_FORM_H_

#include <string>

#include "tokenizer/normalizer.h"

namespace outrider {

// Whether a normal form would change a character, move it or compose it with others, if it were not
// newer than Unicode 9. What stands before such a character and behind it are texts of their own.
bool is_newer_than_forms(char32_t value);

// Brings `text` (well-formed UTF-8) to the form.
void bring_to_form(const UnicodeForm& form, std::string& text);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_UNICODE_FORM_H_
