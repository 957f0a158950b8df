// Small pieces of JSON text. All pure functions.
#ifndef OUTRIDER_REPLY_JSON_WORDS_H_
#define OUTRIDER_REPLY_JSON_WORDS_H_

#include <optional>
#include <string>
#include <string_view>

#include "base/blanks.h"  // what those who read such words need, too

namespace outrider {

// One byte of a text as it stands within a JSON string.
void append_escaped(char byte, std::string& out);
std::string as_json_string(std::string_view text);

// The text that a JSON string spells; nullopt: it is none.
std::optional<std::string> text_of_string(std::string_view json);

// The value that `text` is, blanks around it aside, as JsonScanner passes it on; nullopt: `text` is
// no JSON value.
std::optional<std::string> json_value(std::string_view text);

}  // namespace outrider

#endif  // OUTRIDER_REPLY_JSON_WORDS_H_
