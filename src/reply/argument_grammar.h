// The arguments of a call in forms that do not write them as one JSON object: for
// make_tool_grammar.
#ifndef OUTRIDER_REPLY_ARGUMENT_GRAMMAR_H_
#define OUTRIDER_REPLY_ARGUMENT_GRAMMAR_H_

#include "reply/reply_format.h"
#include "reply/tool_grammar.h"
#include "reply/tool_set.h"

namespace outrider {

// The rule of a line's end that may be left out, which arguments of the syntax paired use and
// whoever calls grammar_of_arguments adds.
inline constexpr const char* kOptionalLineEnd = "line-end";

// What stands in a call of `tool` for its arguments, by the format's syntax (tagged, paired, python
// or bareword); the rules and the document that it uses are added to the grammar's. Throws Error
// for a name of an argument that the form cannot spell, and for a schema that may require arguments
// by other keywords than `properties`, `required` and `additionalProperties`.
GrammarSequence grammar_of_arguments(const CallFormat& format, const Tool& tool,
                                     ToolGrammar& grammar);

}  // namespace outrider

#endif  // OUTRIDER_REPLY_ARGUMENT_GRAMMAR_H_
