// SPDX-License-Identifier: Apache-2.0
// Reads JSON as values, and writes values as JSON in the manner of Python's json module.
#ifndef OUTRIDER_CHAT_TEMPLATE_VALUES_JSON_TEXT_H_
#define OUTRIDER_CHAT_TEMPLATE_VALUES_JSON_TEXT_H_

#include <optional>
#include <string>
#include <string_view>

#include "chat_template/values/value.h"

namespace outrider::jinja {

// Throws Error(operation, object, ...) if the text is not JSON, has integers of more than 64 bits
// or is nested too deeply; Problem if it exceeds the heap's limits.
Value read_json(std::string_view text, Heap& heap, std::string_view operation,
                std::string_view object);

struct JsonStyle {
  bool ascii_only = false;            // escapes all other characters
  std::optional<std::string> indent;  // one level of indentation; nullopt: all on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};
// Throws Problem for values that JSON cannot express.
std::string write_json(const Value& value, const JsonStyle& style, Heap& heap);

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_VALUES_JSON_TEXT_H_
