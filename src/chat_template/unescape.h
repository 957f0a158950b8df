// Literals of a template as values. Pure functions, thread-safe.
#ifndef OUTRIDER_CHAT_TEMPLATE_UNESCAPE_H_
#define OUTRIDER_CHAT_TEMPLATE_UNESCAPE_H_

#include <optional>
#include <string>
#include <string_view>

namespace outrider::jinja {

// A string literal without its quotes, Python's escapes resolved; a backslash before anything else
// stays. nullopt where an escape is broken, or gives no character that UTF-8 can spell (half of a
// surrogate pair); then `problem` says what is wrong.
std::optional<std::string> unescape(std::string_view spelled, std::string& problem);

// A decimal number, "1.5e3", "inf" and "nan" included; nullopt if it is anything else. Beyond the
// range of doubles it is infinite or zero, as in Python.
std::optional<double> read_real_number(const std::string& digits);

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_UNESCAPE_H_
