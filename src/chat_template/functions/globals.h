// SPDX-License-Identifier: Apache-2.0
// The functions that every template may call: range, dict, namespace, cycler, joiner,
// raise_exception and strftime_now.
#ifndef OUTRIDER_CHAT_TEMPLATE_FUNCTIONS_GLOBALS_H_
#define OUTRIDER_CHAT_TEMPLATE_FUNCTIONS_GLOBALS_H_

#include <ctime>
#include <functional>
#include <string>
#include <string_view>

#include "chat_template/values/value.h"

namespace outrider::jinja {

// Thrown by raise_exception, with the template's message.
struct Refusal {
  std::string message;
};

// `now` is called if the template asks for the time. Absent if there is no such function.
Value find_global(std::string_view name, const std::function<std::tm()>& now, Heap& heap);

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_FUNCTIONS_GLOBALS_H_
