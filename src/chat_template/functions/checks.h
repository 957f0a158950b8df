// SPDX-License-Identifier: Apache-2.0
// value is name(arguments): Jinja's tests.
#ifndef OUTRIDER_CHAT_TEMPLATE_FUNCTIONS_CHECKS_H_
#define OUTRIDER_CHAT_TEMPLATE_FUNCTIONS_CHECKS_H_

#include <string_view>

#include "chat_template/values/value.h"

namespace outrider::jinja {

// Throws Problem if the value or the arguments do not fit.
using Check = bool (*)(const Value& subject, const Arguments& arguments, Heap& heap);

// nullptr if there is none of that name. Thread-safe.
Check find_check(std::string_view name);

// Calls a check by name. Throws Problem if there is none.
bool apply_check(std::string_view name, const Value& subject, const Arguments& arguments,
                 Heap& heap);

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_FUNCTIONS_CHECKS_H_
