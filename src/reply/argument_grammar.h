// SPDX-License-Identifier: Apache-2.0
// Grammars for the arguments of a call in forms that do not write them as one JSON object, for
// make_tool_grammar.
#ifndef OUTRIDER_REPLY_ARGUMENT_GRAMMAR_H_
#define OUTRIDER_REPLY_ARGUMENT_GRAMMAR_H_

#include "reply/reply_format.h"
#include "reply/tool_grammar.h"
#include "reply/tool_set.h"

namespace outrider {

// The rule of an optional line end. Arguments of the syntax paired use it; callers of
// grammar_of_arguments add it.
inline constexpr const char* kOptionalLineEnd = "line-end";

// The grammar of the arguments in a call of `tool`, by the format's syntax (tagged, paired, python
// or bareword); adds its rules and its document to `grammar`. Throws Error for an argument's name
// that the form cannot spell, and for a schema that may require arguments by keywords other than
// `properties`, `required` and `additionalProperties`.
GrammarSequence grammar_of_arguments(const CallFormat& format, const Tool& tool,
                                     ToolGrammar& grammar);

}  // namespace outrider

#endif  // OUTRIDER_REPLY_ARGUMENT_GRAMMAR_H_
