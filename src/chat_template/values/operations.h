// SPDX-License-Identifier: Apache-2.0
// Operations on values, by Python's rules. All functions throw Problem where Python raises an
// exception, and if a limit is exceeded.
#ifndef OUTRIDER_CHAT_TEMPLATE_VALUES_OPERATIONS_H_
#define OUTRIDER_CHAT_TEMPLATE_VALUES_OPERATIONS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "chat_template/parsing/syntax.h"
#include "chat_template/values/value.h"

namespace outrider::jinja {

// The undefined value may be printed, tested and iterated; any other use is this problem.
[[noreturn]] void fail_undefined(const Value& value);

bool truth(const Value& value);
bool equal(const Value& left, const Value& right, Heap& heap);
// Whether left < right; the values must be ordered.
bool less(const Value& left, const Value& right, Heap& heap);
bool contains(const Value& container, const Value& item, Heap& heap);
bool compare(Operator operation, const Value& left, const Value& right, Heap& heap);

Value arithmetic(Operator operation, const Value& left, const Value& right, Heap& heap);
Value negative(const Value& value);
Value positive(const Value& value);

// The number of items or characters.
std::int64_t length(const Value& value, Heap& heap);
bool has_length(const Value& value);
bool is_iterable(const Value& value);
// Iterates over the items; an absent value marks the end. Each item counts as a step. The value and
// the heap must outlive the function.
std::function<Value()> items_of(const Value& value, Heap& heap);
std::vector<Value> list_of(const Value& value, Heap& heap);
// The items in reverse order, for values with a length and indices.
std::vector<Value> reversed(const Value& value, Heap& heap);

// value[key] and value[start:stop:step]; absent if there is none.
Value item_of(const Value& value, const Value& key, Heap& heap);
// For arguments that must be whole numbers.
std::int64_t integer_of(const Value& value, std::string_view what);
const std::string& text_of(const Value& value, std::string_view what);

// The number of characters of a text.
std::int64_t n_characters(const Text& text);

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_VALUES_OPERATIONS_H_
