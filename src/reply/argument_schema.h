// What a tool's schema says of one argument, for models that write arguments as plain text. All
// pure functions; what they return points into the tool.
#ifndef OUTRIDER_REPLY_ARGUMENT_SCHEMA_H_
#define OUTRIDER_REPLY_ARGUMENT_SCHEMA_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "reply/tool_set.h"

namespace outrider {

// The schema of one argument, and the document that its references ("#/$defs/..") are looked up in.
struct ArgumentSchema {
  const nlohmann::ordered_json* schema = nullptr;  // null: nothing is said of the argument
  const nlohmann::ordered_json* root = nullptr;
};

// The schema that names a tool's arguments: `parameters`, or what they refer to.
struct ParametersSchema {
  const nlohmann::ordered_json* schema = nullptr;  // an object
  std::string reference = "#";                     // where it stands in `parameters`
};
ParametersSchema parameters_schema(const Tool& tool);

// By `properties`, else by `additionalProperties`. Null where `tool` is null or says nothing of
// that argument.
ArgumentSchema argument_schema(const Tool* tool, std::string_view key);

// Kinds of JSON values, as a set of bits.
enum ValueKind : unsigned {
  kText = 1,
  kNumber = 2,
  kBoolean = 4,
  kNull = 8,
  kArray = 16,
  kObject = 32,
  kAnyKind = 63,
};

// The kinds that a schema takes, by type, enum, const, nullable, $ref and combinations of these;
// all where it says nothing, or more than is looked at (kMostSchemaParts).
unsigned value_kinds(const ArgumentSchema& schema);

// Whether a schema takes texts, or texts and nothing else. (No schema: the first, not the second.)
bool may_be_text(const ArgumentSchema& schema);
bool is_text(const ArgumentSchema& schema);

// The values that `enum` or `const` lists, behind references, of the kinds that the schema takes;
// none where they are not listed.
std::vector<const nlohmann::ordered_json*> listed_values(const ArgumentSchema& schema);

// The JSON value of an argument that a model wrote as plain text: what the schema says it is. A
// text that the schema lists is that text. Where it says nothing, or takes several kinds, a text
// that is JSON of a kind it takes is that, and any other a string; lists and objects may be
// Python's. A text that is not of its kind is a string, too.
std::string argument_value(std::string_view text, const ArgumentSchema& schema);

}  // namespace outrider

#endif  // OUTRIDER_REPLY_ARGUMENT_SCHEMA_H_
