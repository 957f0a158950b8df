// SPDX-License-Identifier: Apache-2.0
// Typed access to a JSON document. A view has its place in the document, so that errors name the
// file and the place. Valid as long as the document. Thread-safe.
#ifndef OUTRIDER_TOKENIZER_FORMATS_JSON_VIEW_H_
#define OUTRIDER_TOKENIZER_FORMATS_JSON_VIEW_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace outrider {

class JsonView {
 public:
  JsonView(const nlohmann::json& value, std::string place)
      : value_(&value), place_(std::move(place)) {}

  const std::string& place() const { return place_; }  // "FILE: model.vocab"
  const nlohmann::json& raw() const { return *value_; }
  bool is_null() const { return value_->is_null(); }
  bool is_string() const { return value_->is_string(); }
  bool is_object() const { return value_->is_object(); }
  bool is_array() const { return value_->is_array(); }

  bool has(const char* key) const;  // whether it is an object with such a member that is not null
  JsonView operator[](const char* key) const;  // Error if there is no such member
  std::vector<JsonView> elements() const;      // Error if it is not an array

  const std::string& string() const;  // Error for another type, as in the next functions
  bool boolean() const;
  std::int64_t integer() const;
  // Members with a default if absent or null.
  std::string string_or(const char* key, std::string_view fallback) const;
  bool boolean_or(const char* key, bool fallback) const;
  std::int64_t integer_or(const char* key, std::int64_t fallback) const;

  [[noreturn]] void fail(std::string_view expected) const;  // "expected X, got (this value)"
  [[noreturn]] void fail(std::string_view expected, std::string_view got) const;

 private:
  const nlohmann::json* value_;
  std::string place_;
};

// Parses a document. Throws Error, with `place`, if it is not JSON or nested absurdly deep.
nlohmann::json parse_json(std::string_view bytes, std::string_view place);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_FORMATS_JSON_VIEW_H_
