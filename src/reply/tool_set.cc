#include "reply/tool_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "outrider/error.h"
#include "reply/json_words.h"
#include "reply/python_literals.h"

namespace outrider {
namespace {

using Json = nlohmann::ordered_json;

// The kinds of JSON values, as a set of bits.
enum Kind : unsigned {
  kText = 1,
  kNumber = 2,
  kBoolean = 4,
  kNull = 8,
  kArray = 16,
  kObject = 32,
  kAnyKind = 63,
};

unsigned kind_named(const std::string& name) {
  if (name == "string") return kText;
  if (name == "number" || name == "integer") return kNumber;
  if (name == "boolean") return kBoolean;
  if (name == "null") return kNull;
  if (name == "array") return kArray;
  return name == "object" ? kObject : kAnyKind;
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

// References that lead to each other end here, and so do choices within choices.
constexpr int kDeepestSchema = 8;

// What "#/a/b" names in the root; null where there is no such place.
const Json* referred(const std::string& reference, const Json* root) {
  if (root == nullptr || !reference.starts_with('#')) return nullptr;
  try {
    const Json::json_pointer place(reference.substr(1));
    return root->contains(place) ? &root->at(place) : nullptr;
  } catch (const Json::exception&) {
    return nullptr;
  }
}

unsigned kinds_of(const ArgumentSchema& of, int depth = 0);

unsigned kinds_of_choices(const Json& choices, const Json* root, int depth) {
  unsigned kinds = 0;
  for (const Json& each : choices) kinds |= kinds_of({&each, root}, depth + 1);
  return kinds == 0 ? kAnyKind : kinds;
}

// What a schema takes, going by the keywords that say so outright.
unsigned kinds_of(const ArgumentSchema& of, int depth) {
  const Json* const found = without_references(of);
  if (found == nullptr || !found->is_object() || depth == kDeepestSchema) return kAnyKind;
  const Json& schema = *found;
  const auto nullable = schema.find("nullable");
  unsigned null = 0;
  if (nullable != schema.end() && *nullable == Json(true)) null = kNull;
  if (const auto type = schema.find("type"); type != schema.end()) {
    if (type->is_string()) return kind_named(type->get<std::string>()) | null;
    unsigned kinds = 0;
    for (const Json& each : *type) {
      kinds |= each.is_string() ? kind_named(each.get<std::string>()) : kAnyKind;
    }
    return (kinds == 0 ? kAnyKind : kinds) | null;
  }
  for (const char* keyword : {"anyOf", "oneOf"}) {
    const auto choices = schema.find(keyword);
    if (choices != schema.end()) return kinds_of_choices(*choices, of.root, depth);
  }
  if (const auto parts = schema.find("allOf"); parts != schema.end()) {
    unsigned kinds = kAnyKind;
    for (const Json& each : *parts) kinds &= kinds_of({&each, of.root}, depth + 1);
    return kinds == 0 ? kAnyKind : kinds;
  }
  if (const auto values = schema.find("enum"); values != schema.end() && values->is_array()) {
    unsigned kinds = 0;
    for (const Json& each : *values) kinds |= kind_of(each.dump().front());
    return kinds == 0 ? kAnyKind : kinds;
  }
  if (const auto value = schema.find("const"); value != schema.end()) {
    return kind_of(value->dump().front());
  }
  return kAnyKind;
}

Tool read_tool(const Json& entry) {
  const auto function = entry.is_object() ? entry.find("function") : entry.end();
  const Json& described = function != entry.end() ? *function : entry;
  const auto field = [&](const char* key) -> const Json* {
    if (!described.is_object()) return nullptr;
    const auto found = described.find(key);
    return found == described.end() || found->is_null() ? nullptr : &*found;
  };
  const Json* name = field("name");
  if (name == nullptr || !name->is_string() || name->get_ref<const std::string&>().empty()) {
    throw Error("read tools", "tools", "a name for every tool", "one without");
  }
  const Json* parameters = field("parameters");
  Tool tool{.name = name->get<std::string>(), .parameters = {}};
  if (parameters == nullptr) {
    tool.parameters = {{"type", "object"}, {"properties", Json::object()}};
  } else if (!parameters->is_object()) {
    throw Error("read tools", tool.name, "parameters that are an object", "another JSON value");
  } else {
    tool.parameters = *parameters;
  }
  return tool;
}

}  // namespace

ToolSet::ToolSet(std::string_view tools) {
  if (tools.empty()) return;
  const Json parsed = Json::parse(tools, nullptr, false);
  if (!parsed.is_array()) throw Error("read tools", "tools", "a JSON array", "another text");
  tools_.reserve(parsed.size());
  for (const Json& entry : parsed) {
    Tool tool = read_tool(entry);
    if (find(tool.name) != nullptr) {
      throw Error("read tools", tool.name, "one tool of that name", "several");
    }
    tools_.push_back(std::move(tool));
  }
}

const Tool* ToolSet::find(std::string_view name) const {
  const auto found = std::find_if(tools_.begin(), tools_.end(),
                                  [name](const Tool& tool) { return tool.name == name; });
  return found == tools_.end() ? nullptr : &*found;
}

ArgumentSchema argument_schema(const Tool* tool, std::string_view key) {
  if (tool == nullptr) return {};
  const auto properties = tool->parameters.find("properties");
  if (properties == tool->parameters.end() || !properties->is_object()) return {};
  const auto found = properties->find(std::string(key));
  if (found == properties->end()) return {};
  return {&*found, &tool->parameters};
}

const Json* without_references(const ArgumentSchema& schema) {
  const Json* at = schema.schema;
  for (int i = 0; i < kDeepestSchema && at != nullptr && at->is_object(); ++i) {
    const auto reference = at->find("$ref");
    if (reference == at->end() || !reference->is_string()) return at;
    const Json* const next = referred(reference->get_ref<const std::string&>(), schema.root);
    if (next == nullptr) return at;
    at = next;
  }
  return at;
}

bool may_be_text(const ArgumentSchema& schema) { return (kinds_of(schema) & kText) != 0; }

bool is_text(const ArgumentSchema& schema) {
  return schema.schema != nullptr && kinds_of(schema) == kText;
}

std::string argument_value(std::string_view text, const ArgumentSchema& schema) {
  const unsigned kinds = kinds_of(schema);
  const std::string_view word = without_blanks(text);
  if ((kinds & kBoolean) != 0 && (word == "True" || word == "False")) {
    return word == "True" ? "true" : "false";
  }
  if ((kinds & kNull) != 0 && word == "None") return "null";
  // A string in quotes is what it spells only where nothing but a string can be meant by it.
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
