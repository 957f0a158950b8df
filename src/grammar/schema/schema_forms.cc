// SPDX-License-Identifier: Apache-2.0
#include "grammar/schema/schema_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "grammar/limits.h"
#include "grammar/schema/schema_reference.h"
#include "outrider/error.h"
#include "outrider/tokenizer.h"

namespace outrider {
namespace {

constexpr std::size_t kMaxAlternatives = 1000;
constexpr int kDeepestExpansion = 64;  // nesting of references and combinations

// Keywords that do not restrict values. `$id` is one, since references are resolved within the
// document alone.
constexpr std::array kAnnotations = {
    "title",           "description",      "default",    "example",
    "examples",        "$schema",          "$comment",   "$id",
    "$defs",           "definitions",      "readOnly",   "writeOnly",
    "contentEncoding", "contentMediaType", "deprecated", "discriminator"};

enum class Value {
  any,
  string,
  boolean,
  count,
  number,
  positive,
  schema,
  schemas,
  members,
  names,
  list,
  type
};
struct Keyword {
  const char* name;
  Value value;
};
constexpr std::array kKeywords = {Keyword{"type", Value::type},
                                  Keyword{"enum", Value::list},
                                  Keyword{"const", Value::any},
                                  Keyword{"nullable", Value::boolean},
                                  Keyword{"properties", Value::members},
                                  Keyword{"required", Value::names},
                                  Keyword{"additionalProperties", Value::schema},
                                  Keyword{"propertyNames", Value::schema},
                                  Keyword{"items", Value::schema},
                                  Keyword{"prefixItems", Value::schemas},
                                  Keyword{"minItems", Value::count},
                                  Keyword{"maxItems", Value::count},
                                  Keyword{"uniqueItems", Value::boolean},
                                  Keyword{"minLength", Value::count},
                                  Keyword{"maxLength", Value::count},
                                  Keyword{"pattern", Value::string},
                                  Keyword{"format", Value::string},
                                  Keyword{"minimum", Value::number},
                                  Keyword{"maximum", Value::number},
                                  Keyword{"exclusiveMinimum", Value::number},
                                  Keyword{"exclusiveMaximum", Value::number},
                                  Keyword{"multipleOf", Value::positive},
                                  Keyword{"anyOf", Value::schemas},
                                  Keyword{"oneOf", Value::schemas},
                                  Keyword{"allOf", Value::schemas},
                                  Keyword{"$ref", Value::string}};

constexpr std::array kTypes = {"object", "array", "string", "number", "integer", "boolean", "null"};

bool is_annotation(std::string_view name) {
  if (name.starts_with("x-")) return true;  // extensions: no misspelt keyword begins so
  return std::find(kAnnotations.begin(), kAnnotations.end(), name) != kAnnotations.end();
}

bool is_type(const SchemaJson& value) {
  return value.is_string() && std::find(kTypes.begin(), kTypes.end(),
                                        value.get_ref<const std::string&>()) != kTypes.end();
}

bool is_schema(const SchemaJson& value) { return value.is_object() || value.is_boolean(); }

template <typename Holds>
bool all_of(const SchemaJson& list, const Holds& holds) {
  return std::all_of(list.begin(), list.end(), holds);
}

// Whether a keyword may have that value; sets `expected` to the values that it may have.
bool may_have(Value kind, const SchemaJson& value, const char*& expected) {
  const auto is_string = [](const SchemaJson& one) { return one.is_string(); };
  switch (kind) {
    case Value::any:
      return true;
    case Value::string:
      expected = "a string";
      return value.is_string();
    case Value::boolean:
      expected = "true or false";
      return value.is_boolean();
    case Value::count:
      expected = "a count up to 1000000000";
      return value.is_number_integer() && value >= 0 && value <= kMaxRepeats;
    case Value::number:
      expected = "a number";
      return value.is_number();
    case Value::positive:
      expected = "a number above 0";
      return value.is_number() && value > 0;
    case Value::schema:
      expected = "a schema (lists of items are prefixItems)";
      return is_schema(value);
    case Value::schemas:
      expected = "a list of schemas";
      return value.is_array() && !value.empty() && all_of(value, is_schema);
    case Value::members:
      expected = "an object of schemas";
      return value.is_object() && all_of(value, is_schema);
    case Value::names:
      expected = "a list of names";
      return value.is_array() && all_of(value, is_string);
    case Value::list:
      expected = "a list";
      return value.is_array();
    case Value::type:
      break;
  }
  expected = "object, array, string, number, integer, boolean, null or a list of these";
  return is_type(value) || (value.is_array() && !value.empty() && all_of(value, is_type));
}

// Whether a schema allows all strings.
bool says_string(const SchemaJson& schema) {
  if (schema.is_boolean()) return schema == true;
  for (const auto& [name, value] : schema.items()) {
    if (!is_annotation(name) && !(name == "type" && value == "string")) return false;
  }
  return true;
}

std::string short_text(const SchemaJson& value) {
  std::string text = value.dump();
  constexpr std::size_t kLongest = 60;
  if (text.size() <= kLongest) return text;
  std::size_t n = kLongest;
  while ((static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) --n;  // the middle of a character
  return text.substr(0, n) + "...";
}

// Whether values of one type may belong to the other.
bool share_values(const std::string& a, const std::string& b) {
  const auto is_number = [](const std::string& type) {
    return type == "number" || type == "integer";
  };
  return a == b || (is_number(a) && is_number(b));
}

// Members sorted by name, and numbers as integers if possible.
nlohmann::json in_one_form(const SchemaJson& value) {
  if (value.is_object()) {
    nlohmann::json members = nlohmann::json::object();
    for (const auto& [name, member] : value.items()) members[name] = in_one_form(member);
    return members;
  }
  if (value.is_array()) {
    nlohmann::json items = nlohmann::json::array();
    for (const SchemaJson& item : value) items.push_back(in_one_form(item));
    return items;
  }
  if (value.is_number_float()) {
    const auto number = value.get<double>();
    constexpr double kEndOfIntegers = 9223372036854775808.0;  // 2^63
    if (std::trunc(number) == number && std::abs(number) < kEndOfIntegers) {
      return static_cast<std::int64_t>(number);
    }
  }
  return value;
}

std::int64_t work_of(const SchemaJson& value) {
  constexpr std::size_t kBytesOfWork = 16;
  std::int64_t work = 1;
  if (value.is_string()) {
    work += static_cast<std::int64_t>(value.get_ref<const std::string&>().size() / kBytesOfWork);
  }
  if (value.is_object()) {
    for (const auto& [name, member] : value.items()) {
      work += work_of(member) + static_cast<std::int64_t>(name.size() / kBytesOfWork);
    }
  } else if (value.is_array()) {
    for (const SchemaJson& item : value) work += work_of(item);
  }
  return work;
}

std::string type_of(const SchemaJson& value) {
  if (value.is_object()) return "object";
  if (value.is_array()) return "array";
  if (value.is_string()) return "string";
  if (value.is_number()) return "number";
  return value.is_boolean() ? "boolean" : "null";
}

}  // namespace

std::string text_of_value(const SchemaJson& value) { return in_one_form(value).dump(); }

std::unordered_set<std::string> texts_of_values(const SchemaJson& list) {
  std::unordered_set<std::string> texts;
  for (const SchemaJson& value : list) texts.insert(text_of_value(value));
  return texts;
}

std::unordered_set<std::string> names_in(const SchemaJson& schema, const char* keyword) {
  std::unordered_set<std::string> names;
  if (!schema.contains(keyword)) return names;
  for (const SchemaJson& name : schema[keyword]) names.insert(name.get<std::string>());
  return names;
}

SchemaForms::SchemaForms(std::string_view text) {
  if (text.size() > kLongestGrammar_bytes) {
    throw Error(kReadSchema, "text", fmt::format("at most {} bytes", kLongestGrammar_bytes),
                fmt::format("{}", text.size()));
  }
  require_text(text, kReadSchema);
  const auto check_depth = [](int depth, SchemaJson::parse_event_t, SchemaJson&) {
    if (depth > kDeepestGrammar) {
      throw Error(kReadSchema, "text", fmt::format("at most {} levels", kDeepestGrammar), "more");
    }
    return true;
  };
  try {
    root_ = SchemaJson::parse(text, check_depth);
  } catch (const SchemaJson::parse_error& error) {
    throw Error(kReadSchema, "text", "JSON", fmt::format("a mistake at byte {}", error.byte));
  } catch (const SchemaJson::exception&) {
    throw Error(kReadSchema, "text", "JSON", "a number out of range");
  }
  if (!is_schema(root_)) throw Error(kReadSchema, "#", "an object", short_text(root_));
}

void SchemaForms::check(const SchemaJson& schema, const std::string& place) const {
  if (schema.is_boolean()) return;
  for (const auto& [name, value] : schema.items()) {
    if (is_annotation(name)) continue;
    const auto keyword =
        std::find_if(kKeywords.begin(), kKeywords.end(),
                     [&name = name](const Keyword& one) { return name == one.name; });
    if (keyword == kKeywords.end()) {
      throw Error(kReadSchema, place, "a supported keyword", fmt::format("'{}'", name));
    }
    const char* expected = "";
    if (!may_have(keyword->value, value, expected)) {
      throw Error(kReadSchema, fmt::format("{}/{}", place, name), expected, short_text(value));
    }
    if (name == "propertyNames" && !says_string(value)) {
      throw Error(kReadSchema, fmt::format("{}/propertyNames", place), "type string alone",
                  short_text(value));
    }
    if (name == "uniqueItems" && value == true) {
      throw Error(kReadSchema, place, "a supported keyword", "'uniqueItems'");
    }
  }
}

void SchemaForms::count_work(const SchemaJson& schema, const std::string& place) const {
  n_work_ += work_of(schema);
  if (n_work_ <= kMaxSchemaWork) return;
  throw Error(kReadSchema, place, "a smaller schema, or fewer references and combinations",
              "more than are put into one");
}

const SchemaJson& SchemaForms::referred(const std::string& ref, const std::string& place) const {
  const SchemaJson* const found = referred_schema(root_, ref);
  if (found != nullptr && is_schema(*found)) return *found;
  throw Error(kReadSchema, fmt::format("{}/$ref", place),
              "a schema in the document, as # or #/... names it", ref);
}

SchemaJson SchemaForms::without_annotations(const SchemaJson& schema) {
  if (!schema.is_object()) return schema;
  SchemaJson result = SchemaJson::object();
  for (const auto& [name, value] : schema.items()) {
    if (!is_annotation(name)) result[name] = value;
  }
  return result;
}

std::vector<SchemaJson> SchemaForms::alternatives(const SchemaJson& schema,
                                                  const std::string& place, int depth) const {
  if (depth > kDeepestExpansion) {
    throw Error(kReadSchema, place, "references and combinations that end", "a circle of them");
  }
  if (schema.is_boolean()) {
    if (schema == false) return {};
    return {SchemaJson::object()};
  }
  count_work(schema, place);
  check(schema, place);
  SchemaJson own = SchemaJson::object();
  for (const auto& [name, value] : schema.items()) {
    if (is_annotation(name) || name == "anyOf" || name == "oneOf" || name == "allOf" ||
        name == "$ref" || name == "nullable" || name == "uniqueItems" || name == "propertyNames") {
      continue;
    }
    if (name == "const") {
      if (!schema.contains("enum")) own["enum"] = SchemaJson::array({value});
    } else if (name == "type") {
      own["type"] = value.is_array() ? value : SchemaJson::array({value});
    } else {
      own[name] = value;
    }
  }
  if (schema.contains("const") && schema.contains("enum")) {
    throw Error(kReadSchema, place, "enum or const", "both");
  }
  const bool nullable = schema.value("nullable", false);
  if (nullable && own.contains("type")) own["type"].push_back("null");

  std::vector<SchemaJson> result = {own};
  const auto restrict_to = [&](const std::vector<SchemaJson>& others) {
    std::vector<SchemaJson> both;
    for (const SchemaJson& a : result) {
      for (const SchemaJson& b : others) {
        count_work(a, place);
        count_work(b, place);
        SchemaJson one = merged_schemas(a, b, place);
        if (!one.is_null()) both.push_back(std::move(one));
        if (both.size() > kMaxAlternatives) {
          throw Error(kReadSchema, place, fmt::format("at most {} alternatives", kMaxAlternatives),
                      "more");
        }
      }
    }
    result = std::move(both);
  };
  if (schema.contains("$ref")) {
    const std::string ref = schema["$ref"];
    restrict_to(alternatives(referred(ref, place), ref, depth + 1));
  }
  if (schema.contains("allOf")) {
    for (const SchemaJson& part : schema["allOf"]) {
      restrict_to(alternatives(part, place + "/allOf", depth + 1));
    }
  }
  for (const char* const name : {"anyOf", "oneOf"}) {
    if (!schema.contains(name)) continue;
    const std::vector<SchemaJson> before = result;
    std::vector<std::vector<SchemaJson>> branches;
    std::vector<SchemaJson> all;
    for (const SchemaJson& branch : schema[name]) {
      result = before;
      restrict_to(alternatives(branch, fmt::format("{}/{}", place, name), depth + 1));
      all.insert(all.end(), result.begin(), result.end());
      branches.push_back(result);
    }
    if (std::string_view(name) == "oneOf") require_disjoint(branches, place, depth);
    if (all.size() > kMaxAlternatives) {
      throw Error(kReadSchema, place, fmt::format("at most {} alternatives", kMaxAlternatives),
                  "more");
    }
    result = std::move(all);
  }
  // Beside others' keywords, as schema generators write it for an optional class value.
  const bool combines = schema.contains("$ref") || schema.contains("allOf") ||
                        schema.contains("anyOf") || schema.contains("oneOf");
  if (nullable && combines && !own.contains("type")) {
    result.push_back({{"type", SchemaJson::array({"null"})}});
  }
  return result;
}

void SchemaForms::require_disjoint(const std::vector<std::vector<SchemaJson>>& branches,
                                   const std::string& place, int depth) const {
  for (std::size_t i = 0; i < branches.size(); ++i) {
    for (std::size_t j = i + 1; j < branches.size(); ++j) {
      for (const SchemaJson& a : branches[i]) {
        for (const SchemaJson& b : branches[j]) {
          if (are_disjoint(a, b, place, depth + 1)) continue;
          throw Error(kReadSchema, fmt::format("{}/oneOf", place),
                      "branches that exclude each other by type, enum or a required property (or "
                      "anyOf)",
                      fmt::format("branches {} and {}", i, j));
        }
      }
    }
  }
}

// For two alternatives; false if it cannot be told.
bool SchemaForms::are_disjoint(const SchemaJson& a, const SchemaJson& b, const std::string& place,
                               int depth) const {
  if (depth > kDeepestExpansion) return false;
  count_work(a, place);
  count_work(b, place);
  const auto types_of = [](const SchemaJson& one) {
    std::vector<std::string> types(kTypes.begin(), kTypes.end());
    if (one.contains("enum")) {
      types.clear();
      for (const SchemaJson& value : one["enum"]) types.push_back(type_of(value));
    } else if (one.contains("type")) {
      types = one["type"].get<std::vector<std::string>>();
    }
    return types;
  };
  const std::vector<std::string> types_a = types_of(a);
  const std::vector<std::string> types_b = types_of(b);
  bool share_some = false;
  bool share_objects_alone = true;
  for (const std::string& type : types_a) {
    for (const std::string& other : types_b) {
      if (!share_values(type, other)) continue;
      share_some = true;
      share_objects_alone = share_objects_alone && type == "object";
    }
  }
  if (!share_some) return true;
  if (a.contains("enum") && b.contains("enum")) {
    const std::unordered_set<std::string> others = texts_of_values(b["enum"]);
    return all_of(a["enum"], [&others](const SchemaJson& value) {
      return !others.contains(text_of_value(value));
    });
  }
  if (!share_objects_alone || a.contains("enum") || b.contains("enum")) return false;
  const auto forbids = [](const SchemaJson& one, const std::string& name) {
    const bool is_named = one.contains("properties") && one["properties"].contains(name);
    return !is_named && one.contains("additionalProperties") &&
           one["additionalProperties"] == false;
  };
  for (const auto& [one, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    if (!one->contains("required")) continue;
    const std::unordered_set<std::string> required_there = names_in(*other, "required");
    for (const SchemaJson& entry : (*one)["required"]) {
      const std::string name = entry;
      if (forbids(*other, name)) return true;
      if (!required_there.contains(name) || !one->contains("properties") ||
          !other->contains("properties") || !(*one)["properties"].contains(name) ||
          !(*other)["properties"].contains(name)) {
        continue;
      }
      bool disjoint = true;
      for (const SchemaJson& x : alternatives((*one)["properties"][name], place, depth + 1)) {
        for (const SchemaJson& y : alternatives((*other)["properties"][name], place, depth + 1)) {
          disjoint = disjoint && are_disjoint(x, y, place, depth + 1);
        }
      }
      if (disjoint) return true;
    }
  }
  return false;
}

}  // namespace outrider
