// SPDX-License-Identifier: Apache-2.0
// JSON Schema without references and combinations: a list of alternatives, each of which is
// complete in itself.
#ifndef OUTRIDER_GRAMMAR_SCHEMA_SCHEMA_FORMS_H_
#define OUTRIDER_GRAMMAR_SCHEMA_SCHEMA_FORMS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace outrider {

inline constexpr const char* kReadSchema = "read JSON schema";

using SchemaJson = nlohmann::ordered_json;

// A canonical text: equal for equal values. The order of members does not matter, and 1 equals 1.0.
std::string text_of_value(const SchemaJson& value);
// Those of all values of a list.
std::unordered_set<std::string> texts_of_values(const SchemaJson& list);
// The strings in a keyword's list; empty if the keyword is missing.
std::unordered_set<std::string> names_in(const SchemaJson& schema, const char* keyword);

// A schema document. Not thread-safe.
class SchemaForms {
 public:
  // Throws Error unless the text is JSON, and a schema.
  explicit SchemaForms(std::string_view text);

  const SchemaJson& root() const { return root_; }

  // Throws Error for an unsupported keyword, with its name and `place`, and for invalid values of
  // keywords.
  void check(const SchemaJson& schema, const std::string& place) const;

  // Counts the processing of a schema, or of a list of values. Throws Error if the total exceeds
  // kMaxSchemaWork.
  void count_work(const SchemaJson& schema, const std::string& place) const;

  // The target of $ref; throws Error if it is not in the document.
  const SchemaJson& referred(const std::string& ref, const std::string& place) const;

  // Alternatives that together allow what the schema allows. They are objects with the keywords
  // type (a list), enum, properties, required, additionalProperties, items, prefixItems, minItems,
  // maxItems, minLength, maxLength, pattern, format, minimum, maximum, exclusiveMinimum,
  // exclusiveMaximum, multipleOf, and no others. Empty: nothing is allowed. Throws Error for
  // combinations that cannot be merged, and for oneOf whose branches do not evidently exclude each
  // other.
  std::vector<SchemaJson> alternatives(const SchemaJson& schema, const std::string& place) const {
    return alternatives(schema, place, 0);
  }

  // A schema without the keywords that do not constrain values.
  static SchemaJson without_annotations(const SchemaJson& schema);

 private:
  std::vector<SchemaJson> alternatives(const SchemaJson& schema, const std::string& place,
                                       int depth) const;
  void require_disjoint(const std::vector<std::vector<SchemaJson>>& branches,
                        const std::string& place, int depth) const;
  bool are_disjoint(const SchemaJson& a, const SchemaJson& b, const std::string& place,
                    int depth) const;

  SchemaJson root_;
  mutable std::int64_t n_work_ = 0;
};

// What both of two such alternatives allow; null if that is nothing. Throws Error if it cannot be
// expressed in one alternative.
SchemaJson merged_schemas(const SchemaJson& a, const SchemaJson& b, const std::string& place);

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_SCHEMA_SCHEMA_FORMS_H_
