// SPDX-License-Identifier: Apache-2.0
#include "reply/argument_schema.h"

#include <optional>

#include "grammar/schema/schema_reference.h"
#include "reply/calls/python_literals.h"
#include "reply/json_words.h"

namespace outrider {
namespace {

using Json = nlohmann::ordered_json;

// The most schemas and listed values that are read for one argument; published tools have some
// tens. This and the next limit end recursive references and nested choices.
constexpr int kMaxSchemaParts = 500;
constexpr int kDeepestSchema = 16;

unsigned kind_named(const std::string& name) {
  if (name == "string") return kText;
  if (name == "number" || name == "integer") return kNumber;
  if (name == "boolean") return kBoolean;
  if (name == "null") return kNull;
  if (name == "array") return kArray;
  return name == "object" ? kObject : kAnyKind;
}

unsigned kind_of_value(const Json& value) {
  if (value.is_string()) return kText;
  if (value.is_boolean()) return kBoolean;
  if (value.is_null()) return kNull;
  if (value.is_array()) return kArray;
  return value.is_object() ? kObject : kNumber;
}

unsigned kind_of(char first_byte) {
  switch (first_byte) {
    case '"':
      return kText;
    case '{':
      return kObject;
    case '[':
      return kArray;
    case 't':
    case 'f':
      return kBoolean;
    case 'n':
      return kNull;
    default:
      return kNumber;
  }
}

bool is_true(const Json& schema, const char* keyword) {
  const auto found = schema.find(keyword);
  return found != schema.end() && *found == Json(true);
}

// The target of a schema's `$ref`; null if it has none, or one that leads nowhere.
const Json* referred_from(const Json& schema, const Json* root) {
  const auto reference = schema.find("$ref");
  if (root == nullptr || reference == schema.end() || !reference->is_string()) return nullptr;
  return referred_schema(*root, reference->get_ref<const std::string&>());
}

// Combines what the keywords of a schema say; all of them must hold.
class KindReader {
 public:
  explicit KindReader(const Json* root) : root_(root) {}

  unsigned of(const Json& schema, int depth = 0) {
    if (!schema.is_object() || depth == kDeepestSchema || !take()) return kAnyKind;
    unsigned kinds = kAnyKind;
    const bool nullable = is_true(schema, "nullable");
    const auto type = schema.find("type");
    if (type != schema.end()) kinds &= of_type(*type) | (nullable ? kNull : 0U);
    bool combines = false;
    if (const Json* const referred = referred_from(schema, root_)) {
      combines = true;
      kinds &= of(*referred, depth + 1);
    }
    for (const char* const keyword : {"anyOf", "oneOf"}) {
      const auto choices = schema.find(keyword);
      if (choices == schema.end()) continue;
      combines = true;
      kinds &= of_choices(*choices, depth);
    }
    if (const auto parts = schema.find("allOf"); parts != schema.end()) {
      combines = true;
      for (const Json& each : *parts) {
        if (n_left_ == 0) break;
        kinds &= of(each, depth + 1);
      }
    }
    if (const auto values = schema.find("enum"); values != schema.end() && values->is_array()) {
      kinds &= of_values(*values);
    }
    if (const auto value = schema.find("const"); value != schema.end()) {
      kinds &= kind_of_value(*value);
    }
    if (nullable && combines && type == schema.end()) kinds |= kNull;
    return kinds == 0 ? kAnyKind : kinds;
  }

 private:
  bool take() {
    if (n_left_ == 0) return false;
    --n_left_;
    return true;
  }

  static unsigned of_type(const Json& type) {
    if (type.is_string()) return kind_named(type.get_ref<const std::string&>());
    unsigned kinds = 0;
    for (const Json& each : type) {
      kinds |= each.is_string() ? kind_named(each.get_ref<const std::string&>()) : kAnyKind;
    }
    return kinds == 0 ? kAnyKind : kinds;
  }

  unsigned of_choices(const Json& choices, int depth) {
    unsigned kinds = 0;
    for (const Json& each : choices) {
      kinds |= of(each, depth + 1);
      if (kinds == kAnyKind) break;
    }
    return kinds == 0 ? kAnyKind : kinds;
  }

  unsigned of_values(const Json& values) {
    unsigned kinds = 0;
    for (const Json& each : values) {
      if (!take()) return kAnyKind;
      kinds |= kind_of_value(each);
      if (kinds == kAnyKind) break;
    }
    return kinds == 0 ? kAnyKind : kinds;
  }

  const Json* root_;
  int n_left_ = kMaxSchemaParts;
};

const Json& null_value() {
  static const Json null;
  return null;
}

}  // namespace

ParametersSchema parameters_schema(const Tool& tool) {
  ParametersSchema found{.schema = &tool.parameters};
  for (int i = 0; i < kDeepestSchema && !found.schema->contains("properties"); ++i) {
    const Json* const next = referred_from(*found.schema, &tool.parameters);
    if (next == nullptr || !next->is_object()) break;
    found.reference = found.schema->at("$ref").get<std::string>();
    found.schema = next;
  }
  return found;
}

ArgumentSchema argument_schema(const Tool* tool, std::string_view key) {
  if (tool == nullptr) return {};
  const Json& parameters = *parameters_schema(*tool).schema;
  const auto properties = parameters.find("properties");
  if (properties != parameters.end() && properties->is_object()) {
    const auto found = properties->find(std::string(key));
    if (found != properties->end()) return {&*found, &tool->parameters};
  }
  const auto others = parameters.find("additionalProperties");
  if (others == parameters.end() || !others->is_object()) return {};
  return {&*others, &tool->parameters};
}

unsigned value_kinds(const ArgumentSchema& schema) {
  return schema.schema == nullptr ? kAnyKind : KindReader(schema.root).of(*schema.schema);
}

bool may_be_text(const ArgumentSchema& schema) { return (value_kinds(schema) & kText) != 0; }

bool is_text(const ArgumentSchema& schema) { return value_kinds(schema) == kText; }

std::vector<const Json*> listed_values(const ArgumentSchema& schema) {
  const unsigned kinds = value_kinds(schema);
  std::vector<const Json*> values;
  const auto add = [&](const Json& value) {
    if ((kinds & kind_of_value(value)) != 0) values.push_back(&value);
  };
  bool adds_null = false;
  const Json* at = schema.schema;
  for (int i = 0; i < kDeepestSchema && at != nullptr && at->is_object(); ++i) {
    if (const auto list = at->find("enum"); list != at->end() && list->is_array()) {
      for (const Json& value : *list) add(value);
    } else if (const auto value = at->find("const"); value != at->end()) {
      add(*value);
    }
    if (!values.empty()) break;
    adds_null = adds_null || (is_true(*at, "nullable") && !at->contains("type"));
    at = referred_from(*at, schema.root);
  }
  if (adds_null && !values.empty()) add(null_value());
  return values;
}

std::string argument_value(std::string_view text, const ArgumentSchema& schema) {
  const unsigned kinds = value_kinds(schema);
  const std::string_view word = without_blanks(text);
  for (const Json* const listed : listed_values(schema)) {
    if (!listed->is_string()) continue;
    const std::string& meant = listed->get_ref<const std::string&>();
    if (meant == text || meant == word) return as_json_string(meant);
  }
  if ((kinds & kBoolean) != 0 && (word == "True" || word == "False")) {
    return word == "True" ? "true" : "false";
  }
  if ((kinds & kNull) != 0 && word == "None") return "null";
  // A string in quotes is unquoted only if nothing but a string can be meant.
  std::optional<std::string> value = kinds == kText ? std::nullopt : json_value(word);
  const bool may_nest = (kinds & (kArray | kObject)) != 0;
  if (!value && may_nest && (word.starts_with('[') || word.starts_with('{'))) {
    value = json_of_python(word);
  }
  if (value && kind_of(value->front()) != kText && (kinds & kind_of(value->front())) != 0) {
    return *value;
  }
  return as_json_string(text);
}

}  // namespace outrider
