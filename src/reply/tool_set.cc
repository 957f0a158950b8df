// SPDX-License-Identifier: Apache-2.0
#include "reply/tool_set.h"

#include <algorithm>
#include <utility>

#include "outrider/error.h"

namespace outrider {
namespace {

using Json = nlohmann::ordered_json;

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

}  // namespace outrider
