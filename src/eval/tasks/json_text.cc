// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/json_text.h"

namespace outrider::eval {

nlohmann::json parse_json(std::string_view text) {
  struct TooDeep {};
  const auto check_depth = [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > kDeepestJson) throw TooDeep();
    return true;
  };
  try {
    return nlohmann::json::parse(text, check_depth, /*allow_exceptions=*/false);
  } catch (const TooDeep&) {
    return nlohmann::json::value_t::discarded;
  }
}

std::string json_text(const nlohmann::ordered_json& value, int indentation) {
  return value.dump(indentation, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace outrider::eval
