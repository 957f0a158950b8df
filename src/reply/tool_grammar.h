// What a reply must look like that calls tools: the words of the model's form, with holes that hold
// a tool's arguments. For tool_choice "required" and for a tool by name.
#ifndef OUTRIDER_REPLY_TOOL_GRAMMAR_H_
#define OUTRIDER_REPLY_TOOL_GRAMMAR_H_

#include <string>
#include <vector>

#include "reply/reply_format.h"
#include "reply/tool_set.h"

namespace outrider {

struct GrammarPart {
  enum class Kind {
    text,    // these bytes
    marker,  // these bytes; one token where the vocabulary has a special token of that spelling
    schema,  // any JSON text of this schema
  };
  Kind kind = Kind::text;
  std::string text;  // the bytes, or the schema
};
using GrammarSequence = std::vector<GrammarPart>;

// before, then a call, then as often as wanted `between` and a call, then after.
struct ToolGrammar {
  GrammarSequence before;
  std::vector<GrammarSequence> calls;  // one for each tool: any of them
  GrammarSequence between;
  GrammarSequence after;
  bool several = false;  // more than one call may stand in the reply
};

struct ToolGrammarOptions {
  std::string name = {};  // the only tool that may be called; "": any of them
  bool parallel = false;  // several calls in one reply, where the form has room for them
};

// Throws Error where there is no tool (of that name), and where the form writes arguments otherwise
// than as JSON, so that no schema fits into it: syntaxes tagged with parameters, python, bareword,
// none. What it describes is what ReplyParser reads; a tool's name is spelled as JSON where it
// stands in JSON.
ToolGrammar make_tool_grammar(const ReplyFormat& format, const ToolSet& tools,
                              const ToolGrammarOptions& options = {});

// The same as GBNF (llama.cpp's form): the rules `root`, `call`, and for every tool
// `call-0`, `call-1`, ... The rules `arguments-0`, `arguments-1`, ..., the schemas of the calls in
// their order, are left to whoever turns schemas into rules.
std::string gbnf_of(const ToolGrammar& grammar);

// The reasoning that a reply of this form begins with, as GBNF: all of it where the prompt has
// begun it, else from the opening marker on, or nothing. Behind it an answer of any grammar may
// follow. Empty where the form has no reasoning. Throws Error where the closing marker has its
// first character twice.
std::string gbnf_of_reasoning(const ReplyFormat& format, bool has_begun);

}  // namespace outrider

#endif  // OUTRIDER_REPLY_TOOL_GRAMMAR_H_
