// SPDX-License-Identifier: Apache-2.0
// How a chat template expects earlier turns: calls of tools, their results, reasoning, and the
// tools themselves. Templates differ in all of these. Most do not report another form: they leave
// the part out, or print it as Python does. So each template is tried once with an invented
// conversation, and its output decides.
#ifndef OUTRIDER_SERVER_REQUESTS_HISTORY_FORM_H_
#define OUTRIDER_SERVER_REQUESTS_HISTORY_FORM_H_

#include <string>
#include <vector>

#include "outrider/chat.h"
#include "outrider/chat_template.h"
#include "outrider/tokenizer.h"
#include "reply/calls/spelled_calls.h"
#include "reply/reply_format.h"
#include "server/requests/json_fields.h"

namespace outrider::server {

struct HistoryForm {
  // Whether the arguments of a call are the text of an object instead of an object.
  bool arguments_as_text = false;
  // The content of a message with calls and no text is null instead of "".
  bool null_content = false;
  // The template shows no calls: they are written into the content in the model's form.
  bool calls_in_content = false;
  // The role of a message with a tool's result.
  std::string result_role = "tool";
  // The template requires alternating roles: consecutive results, and a user's message after them
  // if it has the same role, are joined to one message.
  bool joins_results = false;
  // The member of an assistant's message for reasoning.
  std::string reasoning_member = "reasoning_content";
  // The template reads tools from the text of the first system message instead of a variable.
  bool tools_in_system = false;
};

// Never throws: for a template that shows nothing, the result is the first form tried. `tokenizer`
// may be null (no special tokens). Takes at most about thirty renderings.
HistoryForm find_history_form(const ChatTemplate& chat_template, const Tokenizer* tokenizer);

// Calls in the contents of messages, which hold placeholders until the prompt is rendered: the
// calls' markers are special tokens, and the rest of a call is text.
struct PlacedCalls {
  std::string sign = {};  // the placeholder of calls[i] is: sign, i, sign
  std::vector<SpelledCalls> calls = {};
};

struct FittedMessages {
  Json messages = Json::array();
  PlacedCalls placed = {};
};

// Adapts messages (in OpenAI's form, arguments as objects or as texts) to that form. `tools` (in
// OpenAI's form) go into the system message if they belong there; `variables` are the further ones
// of the template. Arguments that are not a JSON object, as a model may generate, stay unchanged
// text, also in calls within the content. A result with the role `user`, or joined with others, is
// preceded by its tool's name. Throws ApiError (400) for a call that must be in the content and
// cannot be written: the model's form of calls is unknown or cannot be written, or the tool's name
// is not allowed in it.
FittedMessages fitted(Json messages, const Json& tools, const Json& variables,
                      const HistoryForm& form, const ReplyFormat& format);

// Inserts calls into the prompt rendered from adapted messages. If messages are guarded, special
// tokens in calls other than their markers are text. `tokenizer` may be null if they are not.
void put_calls(const PlacedCalls& placed, const Tokenizer* tokenizer, MessageGuard guard,
               ChatPrompt& prompt);

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_REQUESTS_HISTORY_FORM_H_
