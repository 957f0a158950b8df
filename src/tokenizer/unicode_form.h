// Unicode's normal forms. Thread-safe.
#ifndef OUTRIDER_TOKENIZER_UNICODE_FORM_H_
#define OUTRIDER_TOKENIZER_UNICODE_FORM_H_

#include <string>

#include "tokenizer/normalizer.h"

namespace outrider {

// Brings `text` (well-formed UTF-8) to the form, by utf8proc.
void bring_to_form(const UnicodeForm& form, std::string& text);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_UNICODE_FORM_H_
