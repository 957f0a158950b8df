// What a whole reply has to be, as a grammar: calls of tools, an answer of a form, either of them,
// behind whatever reasoning and headers the model writes first.
#ifndef OUTRIDER_REPLY_REPLY_FORM_H_
#define OUTRIDER_REPLY_REPLY_FORM_H_

#include <memory>
#include <string>

#include "outrider/grammar.h"
#include "reply/reply_format.h"
#include "reply/tool_set.h"

namespace outrider {

struct ReplyFormOptions {
  bool must_call = false;                           // a tool; there is no form of an answer, then
  std::string name = {};                            // the only one that may be called; "": any
  bool parallel = true;                             // several calls in one reply
  std::shared_ptr<const Grammar> answer = nullptr;  // of a reply without calls; null: any
  bool in_reasoning = false;                        // the prompt has begun the reasoning
  // The form is read behind the reasoning (GenerateOptions::opening_end), and says nothing of it.
  bool behind_reasoning = false;
};

// Null: any reply. tools: those that the model was told of; null: none. Throws Error where the form
// of calls cannot be held to (make_tool_grammar), or that of reasoning (gbnf_of_reasoning).
std::shared_ptr<const Grammar> make_reply_form(const ReplyFormat& format, const ToolSet* tools,
                                               const ReplyFormOptions& options);

}  // namespace outrider

#endif  // OUTRIDER_REPLY_REPLY_FORM_H_
