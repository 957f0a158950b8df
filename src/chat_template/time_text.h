// A point in time as a text: the directives of strftime in the C locale, with glibc's flags - _ 0
// ^.
#ifndef OUTRIDER_CHAT_TEMPLATE_TIME_TEXT_H_
#define OUTRIDER_CHAT_TEMPLATE_TIME_TEXT_H_

#include <ctime>
#include <string>
#include <string_view>

#include "chat_template/value.h"

namespace outrider::jinja {

// The fields of `time` are those of a day in the calendar; day of the week and of the year
// included. Throws Problem for directives that strftime has not.
std::string time_text(const std::tm& time, std::string_view format, Heap& heap);

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_TIME_TEXT_H_
