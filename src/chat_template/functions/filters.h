// SPDX-License-Identifier: Apache-2.0
// value | name(arguments).
#ifndef OUTRIDER_CHAT_TEMPLATE_FUNCTIONS_FILTERS_H_
#define OUTRIDER_CHAT_TEMPLATE_FUNCTIONS_FILTERS_H_

#include <string_view>

#include "chat_template/values/value.h"

namespace outrider::jinja {

// Throws Problem if the value or the arguments do not fit.
using Filter = Value (*)(const Value& subject, const Arguments& arguments, Heap& heap);

// nullptr if there is none of that name. Thread-safe, as are the others here.
Filter find_filter(std::string_view name);
Filter find_text_filter(std::string_view name);
Filter find_number_filter(std::string_view name);
Filter find_sequence_filter(std::string_view name);
Filter find_order_filter(std::string_view name);
Filter find_selection_filter(std::string_view name);

// Calls a filter by name. Throws Problem if there is none.
Value apply_filter(std::string_view name, const Value& subject, const Arguments& arguments,
                   Heap& heap);

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_FUNCTIONS_FILTERS_H_
