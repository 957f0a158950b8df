// The fields of a JSON object from a client, each read by the type it has to have. What is not read
// by the end is an error: nothing of meaning is ignored.
#ifndef OUTRIDER_SERVER_JSON_FIELDS_H_
#define OUTRIDER_SERVER_JSON_FIELDS_H_

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

// Parses a body. Throws ApiError (400) for what is no JSON, and for JSON nested more deeply than
// 100 levels: what reads, copies and writes values recurses.
Json parse_json(std::string_view text);

// Throws ApiError (400) that names the field by its path. A null counts as a field that is absent.
// The object outlives it. Not thread-safe.
class JsonFields {
 public:
  // path: what the object is called in errors; empty for the body itself.
  explicit JsonFields(const Json& object, std::string path = {});

  bool has(std::string_view name);  // and it is not null
  // The field, or nullptr; it counts as read.
  const Json* find(std::string_view name);
  const Json& require(std::string_view name);

  std::optional<std::string> text(std::string_view name);
  std::string require_text(std::string_view name);
  std::optional<bool> boolean(std::string_view name);
  std::optional<std::int64_t> integer(std::string_view name,
                                      std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                                      std::int64_t most = std::numeric_limits<std::int64_t>::max());
  std::optional<double> number(std::string_view name, double least, double most);
  // A text, or a list of at most `most` texts.
  std::vector<std::string> texts(std::string_view name, std::size_t most);
  // A list; an empty one where the field is absent.
  const Json& list(std::string_view name);
  std::optional<JsonFields> object(std::string_view name);

  // Fields that say nothing of the text that comes back (who asks, what for): taken and left.
  void accept(std::initializer_list<std::string_view> names);
  // Throws where a field has not been read.
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

#endif  // OUTRIDER_SERVER_JSON_FIELDS_H_
