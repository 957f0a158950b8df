// SPDX-License-Identifier: Apache-2.0
// Values as Python prints them. Throws Problem if a limit is exceeded.
#ifndef OUTRIDER_CHAT_TEMPLATE_VALUES_PRINTED_H_
#define OUTRIDER_CHAT_TEMPLATE_VALUES_PRINTED_H_

#include <string>
#include <string_view>

#include "chat_template/values/value.h"

namespace outrider::jinja {

// str(value): the output of {{ }}.
std::string printed(const Value& value, Heap& heap);
// The same as a value: the value itself if it is a text.
Value printed_value(const Value& value, Heap& heap);
// repr(value): with quotes around texts, as within lists.
std::string represented(const Value& value, Heap& heap);

// The shortest digits that give the same number: 1.0, 1e+16, 1.5e-07, inf, nan.
std::string printed_real(double value);
// A text in quotes, with escapes for unprintable characters.
std::string quoted(std::string_view text);

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_VALUES_PRINTED_H_
