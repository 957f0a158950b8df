// SPDX-License-Identifier: Apache-2.0
// Small pieces of JSON text. All pure functions.
#ifndef OUTRIDER_REPLY_JSON_WORDS_H_
#define OUTRIDER_REPLY_JSON_WORDS_H_

#include <optional>
#include <string>
#include <string_view>

#include "base/blanks.h"  // also for the readers of such pieces

namespace outrider {

// Appends one byte of a text as it is written within a JSON string.
void append_escaped(char byte, std::string& out);
std::string as_json_string(std::string_view text);

// The text of a JSON string; nullopt for anything else.
std::optional<std::string> text_of_string(std::string_view json);

// The value of `text`, without surrounding blanks, as JsonScanner passes it on; nullopt if `text`
// is not a JSON value.
std::optional<std::string> json_value(std::string_view text);

}  // namespace outrider

#endif  // OUTRIDER_REPLY_JSON_WORDS_H_
