// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/formats/json_view.h"

#include "outrider/error.h"

namespace outrider {
namespace {

// Deeper than any tokenizer's sequence of sequences; limits recursion over the document.
constexpr int kMaxDepth = 64;

// The value for a message: short, on one line.
std::string brief(const nlohmann::json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array of " + std::to_string(value.size());
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return text;
}

int depth_of(std::string_view bytes) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

nlohmann::json parse_json(std::string_view bytes, std::string_view place) {
  if (depth_of(bytes) > kMaxDepth) {
    throw Error("load tokenizer", place,
                "JSON nested at most " + std::to_string(kMaxDepth) + " deep", "more");
  }
  try {
    return nlohmann::json::parse(bytes.begin(), bytes.end());
  } catch (const nlohmann::json::parse_error& error) {
    throw Error("load tokenizer", place, "JSON text",
                "a syntax error at byte " + std::to_string(error.byte));
  } catch (const nlohmann::json::exception& error) {  // a number out of range, quoted
    throw Error("load tokenizer", place, "JSON", std::string(error.what()).substr(0, 300));
  }
}

void JsonView::fail(std::string_view expected) const { fail(expected, brief(*value_)); }

void JsonView::fail(std::string_view expected, std::string_view got) const {
  throw Error("load tokenizer", place_, expected, got);
}

bool JsonView::has(const char* key) const {
  if (!value_->is_object()) return false;
  const auto found = value_->find(key);
  return found != value_->end() && !found->is_null();
}

JsonView JsonView::operator[](const char* key) const {
  if (!value_->is_object()) fail("an object");
  const auto found = value_->find(key);
  const bool at_top = place_.find(": ") == std::string::npos;
  const std::string place = place_ + (at_top ? ": " : ".") + key;
  if (found == value_->end()) throw Error("load tokenizer", place, "missing");
  return JsonView(*found, place);
}

std::vector<JsonView> JsonView::elements() const {
  if (!value_->is_array()) fail("an array");
  std::vector<JsonView> out;
  out.reserve(value_->size());
  for (const nlohmann::json& element : *value_) {
    out.emplace_back(element, place_ + "[" + std::to_string(out.size()) + "]");
  }
  return out;
}

const std::string& JsonView::string() const {
  if (!value_->is_string()) fail("a string");
  return value_->get_ref<const std::string&>();
}

bool JsonView::boolean() const {
  if (!value_->is_boolean()) fail("true or false");
  return value_->get<bool>();
}

std::int64_t JsonView::integer() const {
  if (!value_->is_number_integer()) fail("an integer");
  if (value_->is_number_unsigned() &&
      value_->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
    fail("an integer below 2^63");
  }
  return value_->get<std::int64_t>();
}

std::string JsonView::string_or(const char* key, std::string_view fallback) const {
  return has(key) ? (*this)[key].string() : std::string(fallback);
}

bool JsonView::boolean_or(const char* key, bool fallback) const {
  return has(key) ? (*this)[key].boolean() : fallback;
}

std::int64_t JsonView::integer_or(const char* key, std::int64_t fallback) const {
  return has(key) ? (*this)[key].integer() : fallback;
}

}  // namespace outrider
