// SPDX-License-Identifier: Apache-2.0
// Formats a time: the directives of strftime in the C locale, with glibc's flags - _ 0 ^.
#ifndef OUTRIDER_CHAT_TEMPLATE_VALUES_TIME_TEXT_H_
#define OUTRIDER_CHAT_TEMPLATE_VALUES_TIME_TEXT_H_

#include <ctime>
#include <string>
#include <string_view>

#include "chat_template/values/value.h"

namespace outrider::jinja {

// The fields of `time` must be a valid day in the calendar, including day of the week and of the
// year. Throws Problem for directives that strftime does not have.
std::string time_text(const std::tm& time, std::string_view format, Heap& heap);

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_VALUES_TIME_TEXT_H_
