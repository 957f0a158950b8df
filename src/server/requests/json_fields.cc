// SPDX-License-Identifier: Apache-2.0
#include "server/requests/json_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "server/api_error.h"

namespace outrider::server {
namespace {

constexpr int kDeepest = 100;

}  // namespace

Json parse_json(std::string_view text) {
  if (const auto zero = text.find('\0'); zero != std::string_view::npos) {
    throw ApiError(400, fmt::format("body: expected JSON, got a zero byte at {}", zero));
  }
  const auto check = [](int depth, Json::parse_event_t, Json&) {
    if (depth <= kDeepest) return true;
    throw ApiError(400, fmt::format("body: expected at most {} nested levels, got more", kDeepest));
  };
  try {
    return Json::parse(text, check);
  } catch (const Json::parse_error& error) {
    throw ApiError(400,
                   fmt::format("body: expected JSON, got a syntax error at byte {}", error.byte));
  } catch (const Json::out_of_range&) {
    throw ApiError(400, "body: expected numbers within double precision, got a larger one");
  }
}

JsonFields::JsonFields(const Json& object, std::string path)
    : object_(&object), path_(std::move(path)) {
  if (!object.is_object()) {
    throw ApiError(400,
                   fmt::format("{}: expected an object, got {}", path_.empty() ? "body" : path_,
                               kind_of(object)),
                   path_);
  }
}

std::string JsonFields::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

void JsonFields::refuse(std::string_view name, std::string_view expected,
                        std::string_view got) const {
  const std::string path = path_of(name);
  throw ApiError(400, fmt::format("{}: expected {}, got {}", path, expected, got), path);
}

bool JsonFields::has(std::string_view name) {
  const auto at = object_->find(name);
  return at != object_->end() && !at->is_null();
}

const Json* JsonFields::find(std::string_view name) {
  read_.emplace(name);
  const auto at = object_->find(name);
  return at == object_->end() || at->is_null() ? nullptr : &*at;
}

const Json& JsonFields::require(std::string_view name) {
  const Json* const value = find(name);
  if (value == nullptr) refuse(name, "a value", "none");
  return *value;
}

std::optional<std::string> JsonFields::text(std::string_view name) {
  const Json* const value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) refuse(name, "a string", kind_of(*value));
  return value->get<std::string>();
}

std::string JsonFields::require_text(std::string_view name) {
  require(name);
  return *text(name);
}

std::optional<bool> JsonFields::boolean(std::string_view name) {
  const Json* const value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) refuse(name, "true or false", kind_of(*value));
  return value->get<bool>();
}

std::optional<std::int64_t> JsonFields::integer(std::string_view name, std::int64_t min,
                                                std::int64_t max) {
  const Json* const value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_integer()) refuse(name, "an integer", kind_of(*value));
  const bool too_large = value->is_number_unsigned() &&
                         value->get<std::uint64_t>() >
                             static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const std::int64_t number = too_large ? 0 : value->get<std::int64_t>();
  if (too_large || number < min || number > max) {
    refuse(name,
           max == std::numeric_limits<std::int64_t>::max()
               ? fmt::format("an integer of at least {}", min)
               : fmt::format("an integer from {} to {}", min, max),
           value->dump());
  }
  return number;
}

std::optional<double> JsonFields::number(std::string_view name, double min, double max) {
  const Json* const value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) refuse(name, "a number", kind_of(*value));
  const double number = value->get<double>();
  if (!(number >= min && number <= max)) {
    refuse(name,
           std::isinf(max) ? fmt::format("a number of at least {}", min)
                           : fmt::format("a number from {} to {}", min, max),
           value->dump());
  }
  return number;
}

std::vector<std::string> JsonFields::texts(std::string_view name, std::size_t max_texts) {
  const Json* const value = find(name);
  if (value == nullptr) return {};
  if (value->is_string()) return {value->get<std::string>()};
  if (!value->is_array()) refuse(name, "a string or a list of strings", kind_of(*value));
  if (value->size() > max_texts) {
    refuse(name, fmt::format("at most {} strings", max_texts), fmt::format("{}", value->size()));
  }
  std::vector<std::string> texts;
  texts.reserve(value->size());
  for (const Json& one : *value) {
    if (!one.is_string()) refuse(name, "a list of strings", fmt::format("{} in it", kind_of(one)));
    texts.push_back(one.get<std::string>());
  }
  return texts;
}

const Json& JsonFields::list(std::string_view name) {
  static const Json none = Json::array();
  const Json* const value = find(name);
  if (value == nullptr) return none;
  if (!value->is_array()) refuse(name, "a list", kind_of(*value));
  return *value;
}

std::optional<JsonFields> JsonFields::object(std::string_view name) {
  const Json* const value = find(name);
  if (value == nullptr) return std::nullopt;
  return JsonFields(*value, path_of(name));
}

void JsonFields::accept(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) read_.emplace(name);
}

void JsonFields::finish() const {
  for (const auto& [name, value] : object_->items()) {
    if (read_.contains(name) || value.is_null()) continue;
    const std::string path = path_of(name);
    throw ApiError(400, fmt::format("{}: this field is not supported here", path), path,
                   "unknown_parameter");
  }
}

std::string_view kind_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "a list";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    default:
      return "a number";
  }
}

}  // namespace outrider::server
