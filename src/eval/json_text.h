// JSON from outside, and JSON of what came from there.
#ifndef OUTRIDER_EVAL_JSON_TEXT_H_
#define OUTRIDER_EVAL_JSON_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace outrider::eval {

// The value, or a discarded one where the text is no JSON or nests deeper than kDeepestJson:
// copying and writing a value recurse, and what nobody writes by hand could exhaust the stack.
inline constexpr int kDeepestJson = 64;
nlohmann::json parse_json(std::string_view text);

// On one line, or over several with that much indentation. Paths and flags may hold bytes that are
// no UTF-8, which JSON cannot say: they become U+FFFD.
std::string json_text(const nlohmann::ordered_json& value, int indentation = -1);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_JSON_TEXT_H_
