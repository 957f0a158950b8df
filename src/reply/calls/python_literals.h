// SPDX-License-Identifier: Apache-2.0
// Converts Python literals, which some models write instead of JSON, to JSON. All functions are
// pure.
#ifndef OUTRIDER_REPLY_CALLS_PYTHON_LITERALS_H_
#define OUTRIDER_REPLY_CALLS_PYTHON_LITERALS_H_

#include <optional>
#include <string>
#include <string_view>

#include "reply/tool_set.h"

namespace outrider {

// Names of functions and arguments. Dots and hyphens are allowed, as in names of tools, although
// Python would read them as operators.
bool begins_python_name(char byte);
bool is_in_python_name(char byte);
bool is_python_name(std::string_view text);

// The arguments between a call's parentheses, "a=1, b='x'", as a JSON object. An argument without a
// name gets the name at its place in the schema of `tool` (may be null). nullopt if it is not a
// list of arguments, or nested deeper than JsonScanner::kDeepest. Also accepts JSON's spellings
// (true, null, \/, pairs of surrogates).
std::optional<std::string> object_of_python(std::string_view arguments, const Tool* tool);

// One value without surrounding blanks; nullopt if `literal` is not a value.
std::optional<std::string> json_of_python(std::string_view literal);

}  // namespace outrider

#endif  // OUTRIDER_REPLY_CALLS_PYTHON_LITERALS_H_
