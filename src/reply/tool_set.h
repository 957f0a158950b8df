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

// The schema of one argument, and the schema that its references ("#/$defs/..") are looked up in.
struct ArgumentSchema {
  const nlohmann::ordered_json* schema = nullptr;  // null: nothing is said of the argument
  const nlohmann::ordered_json* root = nullptr;
};

// Both outlive what is returned. Null where `tool` is null or says nothing of that argument.
ArgumentSchema argument_schema(const Tool* tool, std::string_view key);

// Behind its references, as far as they are to the root; what is returned may be null.
const nlohmann::ordered_json* without_references(const ArgumentSchema& schema);

// Whether a schema takes texts, or texts and nothing else. (No schema: the first, not the second.)
bool may_be_text(const ArgumentSchema& schema);
bool is_text(const ArgumentSchema& schema);

// The JSON value of an argument that a model wrote as plain text: what the schema says it is. Where
// the schema says nothing, or takes several kinds, a text that is JSON of a kind it takes is that,
// and any other a string; lists and objects may be Python's. A text that is not of its kind is a
// string, too.
std::string argument_value(std::string_view text, const ArgumentSchema& schema);

}  // namespace outrider

#endif  // OUTRIDER_REPLY_TOOL_SET_H_
