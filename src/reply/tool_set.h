// SPDX-License-Identifier: Apache-2.0
// The tools in the prompt, as far as parsing a reply needs them.
#ifndef OUTRIDER_REPLY_TOOL_SET_H_
#define OUTRIDER_REPLY_TOOL_SET_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace outrider {

struct Tool {
  std::string name;
  nlohmann::ordered_json parameters;  // a JSON schema
};

// Immutable; thread-safe.
class ToolSet {
 public:
  ToolSet() = default;
  // A JSON array of {"name", "parameters"}, or of {"function": {..}} containing these; "": none.
  // Without parameters the schema is that of an empty object. Throws Error for any other text, and
  // for an empty or repeated name.
  explicit ToolSet(std::string_view tools);

  const std::vector<Tool>& all() const { return tools_; }
  bool empty() const { return tools_.empty(); }
  const Tool* find(std::string_view name) const;  // null: none of that name

 private:
  std::vector<Tool> tools_;
};

}  // namespace outrider

#endif  // OUTRIDER_REPLY_TOOL_SET_H_
