// SPDX-License-Identifier: Apache-2.0
// Converts literals of a template to values. Pure functions, thread-safe.
#ifndef OUTRIDER_CHAT_TEMPLATE_PARSING_UNESCAPE_H_
#define OUTRIDER_CHAT_TEMPLATE_PARSING_UNESCAPE_H_

#include <optional>
#include <string>
#include <string_view>

namespace outrider::jinja {

// A string literal without its quotes, with Python's escapes resolved; a backslash before any other
// character stays. nullopt for a broken escape, and for one that is not a character in UTF-8 (half
// of a surrogate pair); then `problem` says what is wrong.
std::optional<std::string> unescape(std::string_view spelled, std::string& problem);

// A decimal number, including "1.5e3", "inf" and "nan"; nullopt for anything else. Beyond the range
// of doubles it is infinite or zero, as in Python.
std::optional<double> read_real_number(const std::string& digits);

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_PARSING_UNESCAPE_H_
