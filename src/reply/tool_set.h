// The tools that a model was told of, as far as reading its reply needs them.
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
  // A JSON array of {"name", "parameters"}, or of {"function": {..}} with these in it; "": none.
  // Where there are no parameters, the schema is that of an empty object. Throws Error where the
  // text is none of this, and for a name that is empty or there twice.
  explicit ToolSet(std::string_view tools);

  const std::vector<Tool>& all() const { return tools_; }
  bool empty() const { return tools_.empty(); }
  const Tool* find(std::string_view name) const;  // null: none of that name

 private:
  std::vector<Tool> tools_;
};

}  // namespace outrider

#endif  // OUTRIDER_REPLY_TOOL_SET_H_
