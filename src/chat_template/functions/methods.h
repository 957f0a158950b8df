// SPDX-License-Identifier: Apache-2.0
// The non-mutating methods of texts, lists, tuples and dicts.
#ifndef OUTRIDER_CHAT_TEMPLATE_FUNCTIONS_METHODS_H_
#define OUTRIDER_CHAT_TEMPLATE_FUNCTIONS_METHODS_H_

#include <string_view>

#include "chat_template/values/value.h"

namespace outrider::jinja {

// Throws Problem where Python raises an exception.
using Method = Value (*)(const Value& self, const Arguments& arguments, Heap& heap);

// nullptr if the value has no such method, or it is not supported. Thread-safe.
Method find_method(const Value& self, std::string_view name);
Method find_text_method(std::string_view name);
Method find_container_method(const Value& self, std::string_view name);

// Whether Python has a method of that name that would change the list or dict.
bool is_changing_method(const Value& self, std::string_view name);

// text.format(...) and text.format_map(...).
Value format_text(const Value& self, const Arguments& arguments, Heap& heap);
Value format_text_map(const Value& self, const Arguments& arguments, Heap& heap);

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_FUNCTIONS_METHODS_H_
