// SPDX-License-Identifier: Apache-2.0
// The grammar of a reply that calls tools: the fixed text of the model's form, with a tool's
// arguments, or each of them, as variable parts. For tool_choice "required" and for a tool by name.
#ifndef OUTRIDER_REPLY_TOOL_GRAMMAR_H_
#define OUTRIDER_REPLY_TOOL_GRAMMAR_H_

#include <string>
#include <vector>

#include "outrider/grammar.h"
#include "reply/grammar_part.h"
#include "reply/reply_format.h"
#include "reply/tool_set.h"

namespace outrider {

// before, then a call, then any number of `between` and a call, then after.
struct ToolGrammar {
  GrammarSequence before;
  std::vector<GrammarSequence> calls;  // one for each tool, as alternatives
  GrammarSequence between;
  GrammarSequence after;
  std::vector<GrammarRule> rules;      // used by calls and other rules
  std::vector<std::string> documents;  // JSON schemas whose parts are used
  bool several = false;                // the reply may have more than one call
};

struct ToolGrammarOptions {
  std::string name = {};  // the only tool that may be called; "": any of them
  bool parallel = false;  // several calls in one reply, if the form allows it
};

// Throws Error if there is no tool (of that name), or the form of calls is unknown. It also throws
// if the form cannot spell a name, or a form with single arguments cannot enforce a schema. The
// grammar's texts are those that ReplyParser reads as calls with arguments of the schemas' types; a
// tool's name within JSON is spelled as JSON. Forms that write arguments one by one have those in
// `properties` and `required`, in order, the required ones always; arguments written as plain text
// may be any text, whatever the schema says about length or pattern.
ToolGrammar make_tool_grammar(const ReplyFormat& format, const ToolSet& tools,
                              const ToolGrammarOptions& options = {});

// A grammar as GBNF (llama.cpp's notation) with the rule `root`, and the schemas of the rules that
// it uses without defining them: for Grammar::from_gbnf.
struct Gbnf {
  std::string text;
  // `arguments-0`, `arguments-1`, ... in order, then the used documents, each with its parts
  // (`value-0`, `value-1`, ...).
  std::vector<GrammarSchema> schemas = {};
};
Gbnf gbnf_of(const ToolGrammar& grammar);

// The reasoning at the beginning of a reply of this form, as GBNF. If the prompt has begun it, all
// of it; else optional, from the opening marker on. An answer of any grammar may follow; if replies
// are messages, the next message has begun. Empty if the form has no reasoning. Throws Error if the
// closing marker contains its first character twice.
std::string gbnf_of_reasoning(const ReplyFormat& format, bool has_begun);

}  // namespace outrider

#endif  // OUTRIDER_REPLY_TOOL_GRAMMAR_H_
