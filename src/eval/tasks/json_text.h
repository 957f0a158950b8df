// SPDX-License-Identifier: Apache-2.0
// Parses and writes JSON from external sources.
#ifndef OUTRIDER_EVAL_TASKS_JSON_TEXT_H_
#define OUTRIDER_EVAL_TASKS_JSON_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace outrider::eval {

// The value; a discarded one if the text is not JSON or is nested deeper than kDeepestJson: copying
// and writing a value recurse, and deeper nesting could exhaust the stack.
inline constexpr int kDeepestJson = 64;
nlohmann::json parse_json(std::string_view text);

// On one line, or over several with that indentation. Bytes in paths and flags that are not UTF-8
// become U+FFFD.
std::string json_text(const nlohmann::ordered_json& value, int indentation = -1);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_TASKS_JSON_TEXT_H_
