// SPDX-License-Identifier: Apache-2.0
// The grammar of a whole reply: tool calls, an answer of a form, or either, after any reasoning and
// headers that the model writes first.
#ifndef OUTRIDER_REPLY_REPLY_FORM_H_
#define OUTRIDER_REPLY_REPLY_FORM_H_

#include <memory>
#include <string>

#include "outrider/grammar.h"
#include "reply/reply_format.h"
#include "reply/tool_set.h"

namespace outrider {

struct ReplyFormOptions {
  bool must_call = false;                           // a tool; then there is no form of an answer
  std::string name = {};                            // the only tool that may be called; "": any
  bool parallel = true;                             // several calls in one reply
  std::shared_ptr<const Grammar> answer = nullptr;  // of a reply without calls; null: any
  bool in_reasoning = false;                        // the prompt has begun the reasoning
  // The form applies after the reasoning (GenerateOptions::opening_end) and does not describe it.
  bool behind_reasoning = false;
};

// Null: any reply. tools: those in the prompt; null: none. Throws Error if the form of calls cannot
// be enforced (make_tool_grammar), or that of reasoning (gbnf_of_reasoning).
std::shared_ptr<const Grammar> make_reply_form(const ReplyFormat& format, const ToolSet* tools,
                                               const ReplyFormOptions& options);

}  // namespace outrider

#endif  // OUTRIDER_REPLY_REPLY_FORM_H_
