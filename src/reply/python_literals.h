// Python's literals as JSON, which some models write in the place of it. All pure functions.
#ifndef OUTRIDER_REPLY_PYTHON_LITERALS_H_
#define OUTRIDER_REPLY_PYTHON_LITERALS_H_

#include <optional>
#include <string>
#include <string_view>

#include "reply/tool_set.h"

namespace outrider {

// Names of functions and arguments. Tools are named with dots and hyphens, too, which Python would
// take for operators.
bool begins_python_name(char byte);
bool is_in_python_name(char byte);
bool is_python_name(std::string_view text);

// What stands between a call's parentheses, as a JSON object: "a=1, b='x'". An argument without a
// name has the name of its place in the schema of `tool` (may be null). nullopt: it is no list of
// arguments, or nested deeper than JsonScanner::kDeepest. JSON's own spellings (true, null, \/,
// pairs of surrogates) are read as well.
std::optional<std::string> object_of_python(std::string_view arguments, const Tool* tool);

// One value, blanks around it aside; nullopt: `literal` is none.
std::optional<std::string> json_of_python(std::string_view literal);

}  // namespace outrider

#endif  // OUTRIDER_REPLY_PYTHON_LITERALS_H_
