// JSON from outside.
#ifndef OUTRIDER_EVAL_JSON_TEXT_H_
#define OUTRIDER_EVAL_JSON_TEXT_H_

#include <nlohmann/json.hpp>
#include <string_view>

namespace outrider::eval {

// The value, or a discarded one where the text is no JSON or nests deeper than kDeepestJson:
// copying and writing a value recurse, and what nobody writes by hand could exhaust the stack.
inline constexpr int kDeepestJson = 64;
nlohmann::json parse_json(std::string_view text);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_JSON_TEXT_H_
