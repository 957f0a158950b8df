// SPDX-License-Identifier: Apache-2.0
// Reads the fields of a client's JSON object, each with its type. An unread field is an error at
// the end, so no meaningful field is ignored.
#ifndef OUTRIDER_SERVER_REQUESTS_JSON_FIELDS_H_
#define OUTRIDER_SERVER_REQUESTS_JSON_FIELDS_H_

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace outrider::server {

using Json = nlohmann::ordered_json;

// Parses a body. Throws ApiError (400) for invalid JSON, and for more than 100 levels of nesting:
// code that reads, copies and writes values recurses.
Json parse_json(std::string_view text);

// Throws ApiError (400) with the path of the field. A null counts as absent. The object must
// outlive it. Not thread-safe.
class JsonFields {
 public:
  // path: the object's path in errors; empty for the body itself.
  explicit JsonFields(const Json& object, std::string path = {});

  bool has(std::string_view name);  // and is not null
  // The field, or nullptr. Marks it as read.
  const Json* find(std::string_view name);
  const Json& require(std::string_view name);

  std::optional<std::string> text(std::string_view name);
  std::string require_text(std::string_view name);
  std::optional<bool> boolean(std::string_view name);
  std::optional<std::int64_t> integer(std::string_view name,
                                      std::int64_t min = std::numeric_limits<std::int64_t>::min(),
                                      std::int64_t max = std::numeric_limits<std::int64_t>::max());
  std::optional<double> number(std::string_view name, double min, double max);
  // A text, or a list of at most `max_texts` texts.
  std::vector<std::string> texts(std::string_view name, std::size_t max_texts);
  // A list; empty if the field is absent.
  const Json& list(std::string_view name);
  std::optional<JsonFields> object(std::string_view name);

  // Accepts fields that do not affect the result (for example the user and the purpose) without
  // reading them.
  void accept(std::initializer_list<std::string_view> names);
  // Throws if a field has not been read.
  void finish() const;

  std::string path_of(std::string_view name) const;
  [[noreturn]] void refuse(std::string_view name, std::string_view expected,
                           std::string_view got) const;

 private:
  const Json* object_;
  std::string path_;
  std::set<std::string, std::less<>> read_;
};

// "a string", "an array", ...
std::string_view kind_of(const Json& value);

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_REQUESTS_JSON_FIELDS_H_
