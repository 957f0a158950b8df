// What a reply must look like that calls tools: the words of the model's form, with holes that hold
// a tool's arguments, or each of them. For tool_choice "required" and for a tool by name.
#ifndef OUTRIDER_REPLY_TOOL_GRAMMAR_H_
#define OUTRIDER_REPLY_TOOL_GRAMMAR_H_

#include <string>
#include <vector>

#include "outrider/grammar.h"
#include "reply/grammar_part.h"
#include "reply/reply_format.h"
#include "reply/tool_set.h"

namespace outrider {

// before, then a call, then as often as wanted `between` and a call, then after.
struct ToolGrammar {
  GrammarSequence before;
  std::vector<GrammarSequence> calls;  // one for each tool: any of them
  GrammarSequence between;
  GrammarSequence after;
  std::vector<GrammarRule> rules;      // that calls and other rules use
  std::vector<std::string> documents;  // JSON schemas, parts of which they use
  bool several = false;                // more than one call may stand in the reply
};

struct ToolGrammarOptions {
  std::string name = {};  // the only tool that may be called; "": any of them
  bool parallel = false;  // several calls in one reply, where the form has room for them
};

// Throws Error where there is no tool (of that name), where no form of calls is known, for names
// that the form cannot spell, and for schemas that a form with single arguments cannot keep to.
// What it describes is what ReplyParser reads as calls with arguments of the schemas' types; a
// tool's name is spelled as JSON where it stands in JSON. Forms that write arguments one by one
// have those that `properties` and `required` name, in their order, the required ones always; what
// they write as plain text is any text, whatever the schema says of its length or pattern.
ToolGrammar make_tool_grammar(const ReplyFormat& format, const ToolSet& tools,
                              const ToolGrammarOptions& options = {});

// A grammar as GBNF (llama.cpp's form), with the rule `root`, and the schemas of rules that it uses
// and does not define: for Grammar::from_gbnf.
struct Gbnf {
  std::string text;
  // `arguments-0`, `arguments-1`, ... in their order, and then the documents that are used, each
  // with its parts (`value-0`, `value-1`, ...).
  std::vector<GrammarSchema> schemas = {};
};
Gbnf gbnf_of(const ToolGrammar& grammar);

// The reasoning that a reply of this form begins with, as GBNF: all of it where the prompt has
// begun it, else from the opening marker on, or nothing. Behind it an answer of any grammar may
// follow; where replies are messages, the next one has begun. Empty where the form has no
// reasoning. Throws Error where the closing marker has its first character twice.
std::string gbnf_of_reasoning(const ReplyFormat& format, bool has_begun);

}  // namespace outrider

#endif  // OUTRIDER_REPLY_TOOL_GRAMMAR_H_
