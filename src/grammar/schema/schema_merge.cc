// SPDX-License-Identifier: Apache-2.0
// allOf: merges the requirements of two schemas.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "grammar/schema/schema_forms.h"
#include "outrider/error.h"

namespace outrider {
namespace {

SchemaJson both(const SchemaJson& a, const SchemaJson& b) {
  if (a == true || a == b) return b;
  if (b == true) return a;
  if (a == false || b == false) return false;
  SchemaJson result = SchemaJson::object();
  result["allOf"] = SchemaJson::array({a, b});
  return result;
}

// The subschema of an object schema for a property.
SchemaJson said_of(const SchemaJson& schema, const std::string& name) {
  if (schema.contains("properties") && schema["properties"].contains(name)) {
    return schema["properties"][name];
  }
  return schema.contains("additionalProperties") ? schema["additionalProperties"]
                                                 : SchemaJson(true);
}

SchemaJson common_types(const SchemaJson& a, const SchemaJson& b) {
  SchemaJson types = SchemaJson::array();
  const auto add = [&types](const SchemaJson& type) {
    if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
  };
  for (const SchemaJson& type : a) {
    for (const SchemaJson& other : b) {
      if (type == other) add(type);
      if (type == "integer" && other == "number") add(type);
      if (type == "number" && other == "integer") add(other);
    }
  }
  return types;
}

SchemaJson common_values(const SchemaJson& a, const SchemaJson& b) {
  const std::unordered_set<std::string> others = texts_of_values(b);
  SchemaJson values = SchemaJson::array();
  for (const SchemaJson& value : a) {
    if (others.contains(text_of_value(value))) values.push_back(value);
  }
  return values;
}

void merge_properties(const SchemaJson& a, const SchemaJson& b, SchemaJson& result) {
  if (!a.contains("properties") && !b.contains("properties")) return;
  SchemaJson properties = SchemaJson::object();
  for (const SchemaJson* const one : {&a, &b}) {
    if (!one->contains("properties")) continue;
    for (const auto& [name, schema] : (*one)["properties"].items()) {
      properties[name] = both(said_of(a, name), said_of(b, name));
    }
  }
  result["properties"] = properties;
}

}  // namespace

SchemaJson merged_schemas(const SchemaJson& a, const SchemaJson& b, const std::string& place) {
  SchemaJson result = a;
  merge_properties(a, b, result);
  for (const auto& [name, value] : b.items()) {
    if (name == "properties") continue;
    if (!a.contains(name)) {
      result[name] = value;
      continue;
    }
    const SchemaJson& own = a[name];
    if (name == "type") {
      result[name] = common_types(own, value);
      if (result[name].empty()) return nullptr;
    } else if (name == "enum") {
      result[name] = common_values(own, value);
      if (result[name].empty()) return nullptr;
    } else if (name == "required") {
      const std::unordered_set<std::string> there = names_in(a, "required");
      for (const SchemaJson& entry : value) {
        if (!there.contains(entry.get<std::string>())) result[name].push_back(entry);
      }
    } else if (name == "items" || name == "additionalProperties") {
      result[name] = both(own, value);
    } else if (name == "minItems" || name == "minLength" || name == "minimum" ||
               name == "exclusiveMinimum") {
      if (value > own) result[name] = value;
    } else if (name == "maxItems" || name == "maxLength" || name == "maximum" ||
               name == "exclusiveMaximum") {
      if (value < own) result[name] = value;
    } else if (own != value) {  // pattern, format, multipleOf, prefixItems
      throw Error(kReadSchema, place, fmt::format("one {} in all parts of allOf", name), "several");
    }
  }
  // Items after a prefix differ from items of the whole list.
  if ((a.contains("prefixItems") && b.contains("items") && !b.contains("prefixItems")) ||
      (b.contains("prefixItems") && a.contains("items") && !a.contains("prefixItems"))) {
    throw Error(kReadSchema, place, "prefixItems and items in one part of allOf", "in two");
  }
  return result;
}

}  // namespace outrider
