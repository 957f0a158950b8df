// SPDX-License-Identifier: Apache-2.0
// The schema of a tool's single argument, for models that write arguments as plain text. All
// functions are pure; results point into the tool.
#ifndef OUTRIDER_REPLY_ARGUMENT_SCHEMA_H_
#define OUTRIDER_REPLY_ARGUMENT_SCHEMA_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "reply/tool_set.h"

namespace outrider {

// The schema of one argument, and the document for its references ("#/$defs/..").
struct ArgumentSchema {
  const nlohmann::ordered_json* schema = nullptr;  // null: nothing is known about the argument
  const nlohmann::ordered_json* root = nullptr;
};

// The schema with a tool's arguments: `parameters`, or the target of its reference.
struct ParametersSchema {
  const nlohmann::ordered_json* schema = nullptr;  // an object
  std::string reference = "#";                     // its place in `parameters`
};
ParametersSchema parameters_schema(const Tool& tool);

// By `properties`, else by `additionalProperties`. Null if `tool` is null or does not describe that
// argument.
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

// The kinds that a schema allows, by type, enum, const, nullable, $ref and combinations of these.
// All kinds, if it has no restriction, or more parts than are examined (kMaxSchemaParts).
unsigned value_kinds(const ArgumentSchema& schema);

// Whether a schema allows texts; and whether it allows only texts. (Without a schema: true, false.)
bool may_be_text(const ArgumentSchema& schema);
bool is_text(const ArgumentSchema& schema);

// The values listed by `enum` or `const`, after references, of the kinds that the schema allows;
// empty if none are listed.
std::vector<const nlohmann::ordered_json*> listed_values(const ArgumentSchema& schema);

// The JSON value of an argument that a model wrote as plain text, by its schema. A text listed in
// the schema is that text. If the schema says nothing or allows several kinds, a text that is JSON
// of an allowed kind is that value, and any other is a string; lists and objects may be in Python's
// notation. A text that is not of its kind is a string, too.
std::string argument_value(std::string_view text, const ArgumentSchema& schema);

}  // namespace outrider

#endif  // OUTRIDER_REPLY_ARGUMENT_SCHEMA_H_
