// SPDX-License-Identifier: Apache-2.0
#include "grammar/schema/json_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "grammar/limits.h"
#include "grammar/regex.h"
#include "grammar/schema/formats.h"
#include "grammar/schema/json_parts.h"
#include "grammar/schema/number_range.h"
#include "grammar/schema/schema_forms.h"
#include "outrider/error.h"

namespace outrider {
namespace {

// Keywords by the type of the values that they restrict.
struct TypedKeywords {
  const char* type;
  std::vector<const char*> names;
};
const std::vector<TypedKeywords>& keywords_by_type() {
  static const std::vector<TypedKeywords> all = {
      {"object", {"properties", "required", "additionalProperties"}},
      {"array", {"items", "prefixItems", "minItems", "maxItems"}},
      {"string", {"minLength", "maxLength", "pattern", "format"}},
      {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}}};
  return all;
}

bool is_of_type(const SchemaJson& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  return value.is_number_integer() ||
         (value.is_number() && std::trunc(value.get<double>()) == value.get<double>());
}

std::int64_t n_characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

class Reader {
 public:
  Reader(std::string_view text, GrammarParts& parts) : forms_(text), parts_(parts), json_(parts) {}

  // Returns a rule.
  int read(const std::string& place) {
    const int root = parts_.declare("schema");
    parts_.define(root, schema(forms_.referred(place, "#"), place));
    while (!waiting_.empty()) {
      const Waiting next = std::move(waiting_.front());
      waiting_.pop_front();
      parts_.define(next.rule, definition(next.schema, next.place));
    }
    return root;
  }

 private:
  struct Waiting {
    int rule;
    SchemaJson schema;
    std::string place;
  };

  // One rule per distinct schema text, so that recursion ends. Rules are defined one after the
  // other, so nothing recurses as deep as a document nests.
  int schema(const SchemaJson& schema, const std::string& place) {
    if (schema == true) return json_.value();
    forms_.count_work(schema, place);
    const SchemaJson bare = SchemaForms::without_annotations(schema);
    const auto [at, is_new] = rules_.try_emplace(bare.dump(), -1);
    if (is_new) {
      at->second = parts_.declare(place);
      waiting_.push_back({at->second, bare, place});
    }
    return parts_.call(at->second);
  }

  int definition(const SchemaJson& bare, const std::string& place) {
    if (bare == false) return parts_.never();
    forms_.check(bare, place);
    if (bare.size() == 1 && bare.contains("$ref")) {
      const std::string ref = bare["$ref"];
      return schema(forms_.referred(ref, place), ref);
    }
    if (bare.size() == 1 && bare.contains("anyOf")) {
      std::vector<int> choices;
      for (const SchemaJson& branch : bare["anyOf"]) {
        choices.push_back(schema(branch, place + "/anyOf"));
      }
      return parts_.choice(std::move(choices));
    }
    std::vector<int> choices;
    for (const SchemaJson& one : forms_.alternatives(bare, place)) {
      choices.push_back(one.contains("enum") ? values(one, place) : of_types(one, place));
    }
    return parts_.choice(std::move(choices));
  }

  int values(const SchemaJson& one, const std::string& place) {
    std::vector<int> choices;
    for (const SchemaJson& value : one["enum"]) {
      require_exact(value, place);
      const bool fits = !one.contains("type") || std::any_of(one["type"].begin(), one["type"].end(),
                                                             [&value](const SchemaJson& type) {
                                                               return is_of_type(value, type);
                                                             });
      if (fits && keeps_bounds(value, one, place)) choices.push_back(parts_.text(value.dump()));
    }
    return parts_.choice(std::move(choices));
  }

  // Integers beyond 64 bits would be read as other numbers.
  static void require_exact(const SchemaJson& value, const std::string& place) {
    constexpr double kFar = 1e18;
    if (value.is_number_float() && std::abs(value.get<double>()) >= kFar) {
      throw Error(kReadSchema, place, "numbers below 1e18 in enum and const", value.dump());
    }
    if (!value.is_structured()) return;
    for (const SchemaJson& part : value) require_exact(part, place);
  }

  // Whether a value satisfies the keywords beside enum for its type.
  bool keeps_bounds(const SchemaJson& value, const SchemaJson& one, const std::string& place) {
    for (const TypedKeywords& typed : keywords_by_type()) {
      if (!is_of_type(value, typed.type)) continue;
      for (const char* const name : typed.names) {
        if (one.contains(name) && !keeps(value, name, one[name], place)) return false;
      }
    }
    return true;
  }

  bool keeps(const SchemaJson& value, std::string_view name, const SchemaJson& bound,
             const std::string& place) {
    if (value.is_number()) {
      const int order = compare(Decimal::read(value.dump()), Decimal::read(bound.dump()));
      if (name == "minimum") return order >= 0;
      if (name == "maximum") return order <= 0;
      if (name == "exclusiveMinimum") return order > 0;
      if (name == "exclusiveMaximum") return order < 0;
    }
    if (value.is_string()) {
      const std::int64_t n = n_characters(value.get_ref<const std::string&>());
      if (name == "minLength") return n >= bound;
      if (name == "maxLength") return n <= bound;
    }
    if (value.is_array()) {
      if (name == "minItems") return value.size() >= bound;
      if (name == "maxItems") return value.size() <= bound;
    }
    throw Error(kReadSchema, place, "enum and const without this keyword",
                fmt::format("'{}'", name));
  }

  int of_types(const SchemaJson& one, const std::string& place) {
    std::vector<std::string> types;
    if (one.contains("type")) {
      types = one["type"].get<std::vector<std::string>>();
    } else {
      for (const TypedKeywords& typed : keywords_by_type()) {
        if (std::any_of(typed.names.begin(), typed.names.end(),
                        [&one](const char* name) { return one.contains(name); })) {
          types.emplace_back(typed.type);
        }
      }
      if (types.empty()) return json_.value();
    }
    std::vector<int> choices;
    choices.reserve(types.size());
    for (const std::string& type : types) choices.push_back(of_type(type, one, place));
    return parts_.choice(std::move(choices));
  }

  int of_type(const std::string& type, const SchemaJson& one, const std::string& place) {
    if (type == "object") return object(one, place);
    if (type == "array") return array(one, place);
    if (type == "string") return string(one, place);
    if (type == "number" || type == "integer") return number(type == "integer", one, place);
    return type == "boolean" ? json_.boolean() : json_.null();
  }

  int object(const SchemaJson& one, const std::string& place) {
    const SchemaJson properties =
        one.contains("properties") ? one["properties"] : SchemaJson::object();
    const std::unordered_set<std::string> required_names = names_in(one, "required");
    const SchemaJson others =
        one.contains("additionalProperties") ? one["additionalProperties"] : SchemaJson(true);
    std::vector<JsonParts::Member> members;
    std::vector<std::string> names;
    members.reserve(properties.size());
    names.reserve(properties.size());
    const auto add = [&](const std::string& name, const SchemaJson& property, bool required) {
      names.push_back(name);
      members.push_back({.key = json_.quoted(name),
                         .value = schema(property, place + "/" + name),
                         .required = required});
    };
    for (const auto& [name, property] : properties.items()) {
      add(name, property, required_names.contains(name));
    }
    if (!required_names.empty()) {
      std::unordered_set<std::string> there(names.begin(), names.end());
      for (const SchemaJson& entry : one["required"]) {
        const std::string name = entry;
        if (there.insert(name).second) add(name, others, true);
      }
    }
    // Unnamed members are generated if the schema mentions them.
    const bool open = one.contains("additionalProperties") ? others != false : names.empty();
    int other = JsonParts::kNone;
    if (open) {
      const int key = names.empty() ? json_.string() : json_.other_key(names);
      other = json_.member(key, schema(others, place + "/additionalProperties"));
    }
    return json_.object_of(members, other);
  }

  int array(const SchemaJson& one, const std::string& place) {
    const int min = one.value("minItems", 0);
    const int max = one.value("maxItems", kUnlimited);
    if (max != kUnlimited && max < min) return parts_.never();
    std::vector<int> first;
    if (one.contains("prefixItems")) {
      first.reserve(one["prefixItems"].size());
      for (const SchemaJson& item : one["prefixItems"]) {
        first.push_back(schema(item, place + "/prefixItems"));
      }
    }
    int rest = JsonParts::kNone;
    if (!one.contains("items")) {
      rest = json_.value();
    } else if (one["items"] != false) {
      rest = schema(one["items"], place + "/items");
    }
    return json_.array_of(first, rest, min, max);
  }

  int string(const SchemaJson& one, const std::string& place) {
    const bool has_pattern = one.contains("pattern");
    const bool has_format = one.contains("format");
    if (!has_pattern && !has_format) {
      const int min = one.value("minLength", 0);
      const int max = one.value("maxLength", kUnlimited);
      if (max != kUnlimited && max < min) return parts_.never();
      return min == 0 && max == kUnlimited ? json_.string() : json_.string(min, max);
    }
    if (has_pattern && has_format) {
      throw Error(kReadSchema, place, "pattern or format", "both");
    }
    for (const char* const name : {"minLength", "maxLength"}) {
      if (one.contains(name)) {
        throw Error(kReadSchema, place, "pattern and format without bounds of the length",
                    fmt::format("'{}'", name));
      }
    }
    const auto character = [this](const CodePoints& set) { return json_.character(set); };
    if (has_pattern) {
      const std::string pattern = one["pattern"];
      try {
        return json_.quoted(
            regex_part(pattern, Anchors::stated, parts_, character, "read pattern"));
      } catch (const Error& error) {
        throw Error(kReadSchema, place + "/pattern", error.what());
      }
    }
    const std::string format = one["format"];
    const auto expression = expression_of_format(format);
    if (!expression) {
      throw Error(kReadSchema, place + "/format",
                  fmt::format("one of {}", fmt::join(known_formats(), " ")), format);
    }
    return json_.quoted(regex_part(*expression, Anchors::implied, parts_, character, kReadSchema));
  }

  int number(bool whole, const SchemaJson& one, const std::string& place) {
    NumberForm form{.whole = whole};
    // The narrower of two bounds; between an exclusive and an inclusive bound, the former.
    const auto narrow = [&one](std::optional<NumberBound>& bound, const char* name,
                               bool is_left_out, int side) {
      if (!one.contains(name)) return;
      NumberBound other{Decimal::read(one[name].dump()), is_left_out};
      const int order = bound ? side * compare(other.value, bound->value) : 1;
      if (order > 0 || (order == 0 && is_left_out)) bound = std::move(other);
    };
    narrow(form.min, "minimum", false, 1);
    narrow(form.min, "exclusiveMinimum", true, 1);
    narrow(form.max, "maximum", false, -1);
    narrow(form.max, "exclusiveMaximum", true, -1);
    if (one.contains("multipleOf")) form.multiple_of = Decimal::read(one["multipleOf"].dump());
    if (!form.min && !form.max && !form.multiple_of) {
      return whole ? json_.integer() : json_.number();
    }
    const std::optional<int> part = numbers_of(form, parts_);
    if (part) return *part;
    throw Error(kReadSchema, place + "/multipleOf", "a number with fewer remainders",
                one["multipleOf"].dump());
  }

  SchemaForms forms_;
  GrammarParts& parts_;
  JsonParts json_;
  std::unordered_map<std::string, int> rules_;  // by their schemas' texts
  std::deque<Waiting> waiting_;
};

}  // namespace

CompiledGrammar read_json_schema(std::string_view text) {
  GrammarParts parts;
  const std::string whole = "#";
  const int root = add_json_schema(text, {&whole, 1}, parts).front();
  return {parts, root, kReadSchema};
}

std::vector<int> add_json_schema(std::string_view text, std::span<const std::string> places,
                                 GrammarParts& parts) {
  Reader reader(text, parts);
  std::vector<int> rules;
  rules.reserve(places.size());
  for (const std::string& place : places) rules.push_back(reader.read(place));
  return rules;
}

CompiledGrammar any_json_object() {
  GrammarParts parts;
  JsonParts json(parts);
  const int root = parts.declare("JSON object");
  parts.define(root, json.object());
  return {parts, root, "make grammar"};
}

}  // namespace outrider
