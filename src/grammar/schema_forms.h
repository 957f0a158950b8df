// JSON Schema in a form without references and combinations: a list of alternatives, each of which
// says all of what it asks for by itself.
#ifndef OUTRIDER_GRAMMAR_SCHEMA_FORMS_H_
#define OUTRIDER_GRAMMAR_SCHEMA_FORMS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace outrider {

inline constexpr const char* kReadSchema = "read JSON schema";

using SchemaJson = nlohmann::ordered_json;

// A text that values have in common that are the same: whatever the order of their members, and 1
// is 1.0.
std::string text_of_value(const SchemaJson& value);
// Of all values of a list.
std::unordered_set<std::string> texts_of_values(const SchemaJson& list);
// What a keyword's list of strings holds; nothing where it is not there.
std::unordered_set<std::string> names_in(const SchemaJson& schema, const char* keyword);

// A schema document. Not thread-safe.
class SchemaForms {
 public:
  // Throws Error unless the text is JSON, and a schema.
  explicit SchemaForms(std::string_view text);

  const SchemaJson& root() const { return root_; }

  // Throws Error for a keyword that is not supported, naming it and `place`, and for a value that a
  // keyword cannot have.
  void check(const SchemaJson& schema, const std::string& place) const;

  // Counts the handling of a schema, or of a list of values. Throws Error where all that was
  // handled is more than kMostSchemaWork.
  void count_work(const SchemaJson& schema, const std::string& place) const;

  // What $ref names; throws Error for what is not in the document.
  const SchemaJson& referred(const std::string& ref, const std::string& place) const;

  // Alternatives that together allow what the schema allows: objects with the keywords type (a
  // list), enum, properties, required, additionalProperties, items, prefixItems, minItems,
  // maxItems, minLength, maxLength, pattern, format, minimum, maximum, exclusiveMinimum,
  // exclusiveMaximum, multipleOf, no others. None: nothing is allowed. Throws Error for
  // combinations that cannot be merged, and for oneOf whose branches are not seen to exclude each
  // other.
  std::vector<SchemaJson> alternatives(const SchemaJson& schema, const std::string& place) const {
    return alternatives(schema, place, 0);
  }

  // A schema without the keywords that say nothing about values.
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

// What both of two such alternatives allow; null where that is nothing. Throws Error where it
// cannot be said in one.
SchemaJson merged_schemas(const SchemaJson& a, const SchemaJson& b, const std::string& place);

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_SCHEMA_FORMS_H_
