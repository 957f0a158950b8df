#include "reply/tool_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "outrider/error.h"
#include "reply/json_words.h"

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

// What a schema takes, going by the keywords that say so outright.
unsigned kinds_of(const Json& schema, int depth = 0) {
  constexpr int kDeepest = 8;
  if (!schema.is_object() || depth == kDeepest) return kAnyKind;
  if (const auto type = schema.find("type"); type != schema.end()) {
    if (type->is_string()) return kind_named(type->get<std::string>());
    unsigned kinds = 0;
    for (const Json& each : *type) {
      kinds |= each.is_string() ? kind_named(each.get<std::string>()) : kAnyKind;
    }
    return kinds == 0 ? kAnyKind : kinds;
  }
  for (const char* keyword : {"anyOf", "oneOf"}) {
    const auto choices = schema.find(keyword);
    if (choices == schema.end()) continue;
    unsigned kinds = 0;
    for (const Json& each : *choices) kinds |= kinds_of(each, depth + 1);
    return kinds == 0 ? kAnyKind : kinds;
  }
  if (const auto values = schema.find("enum"); values != schema.end() && values->is_array()) {
    unsigned kinds = 0;
    for (const Json& each : *values) kinds |= kind_of(each.dump().front());
    return kinds == 0 ? kAnyKind : kinds;
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

const Json* argument_schema(const Tool* tool, std::string_view key) {
  if (tool == nullptr) return nullptr;
  const auto properties = tool->parameters.find("properties");
  if (properties == tool->parameters.end() || !properties->is_object()) return nullptr;
  const auto found = properties->find(std::string(key));
  return found == properties->end() ? nullptr : &*found;
}

bool is_text(const Json* schema) { return schema != nullptr && kinds_of(*schema) == kText; }

std::string argument_value(std::string_view text, const Json* schema) {
  const unsigned kinds = schema == nullptr ? kAnyKind : kinds_of(*schema);
  const std::string_view word = without_blanks(text);
  if ((kinds & kBoolean) != 0 && (word == "True" || word == "False")) {
    return word == "True" ? "true" : "false";
  }
  if ((kinds & kNull) != 0 && word == "None") return "null";
  // A string in quotes is what it spells only where nothing but a string can be meant by it.
  const std::optional<std::string> value = kinds == kText ? std::nullopt : json_value(word);
  if (value && kind_of(value->front()) != kText && (kinds & kind_of(value->front())) != 0) {
    return *value;
  }
  return as_json_string(text);
}

}  // namespace outrider
