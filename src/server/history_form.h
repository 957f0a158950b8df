// How a chat template takes what was said before: earlier calls of tools, their results, earlier
// reasoning, and the tools themselves. Templates differ in all of these, and most that are given
// another form say nothing and leave the part out, or show it as Python prints it; so each template
// is tried with a conversation of made-up words, once, and what it shows of them decides.
#ifndef OUTRIDER_SERVER_HISTORY_FORM_H_
#define OUTRIDER_SERVER_HISTORY_FORM_H_

#include <string>
#include <vector>

#include "outrider/chat.h"
#include "outrider/chat_template.h"
#include "outrider/tokenizer.h"
#include "reply/reply_format.h"
#include "reply/spelled_calls.h"
#include "server/json_fields.h"

namespace outrider::server {

struct HistoryForm {
  // What the arguments of a call are: an object, or the text of one.
  bool arguments_as_text = false;
  // The content of a message that calls and says nothing is null, and not "".
  bool null_content = false;
  // The template shows no calls: they stand in the content, as the model writes them.
  bool calls_in_content = false;
  // The role of a message with a tool's result.
  std::string result_role = "tool";
  // Results that follow each other, and what a user says behind them where that is the role of
  // both, are one message: the template takes turns.
  bool joins_results = false;
  // The member of an assistant's message that holds reasoning.
  std::string reasoning_member = "reasoning_content";
  // The template reads tools from the first system message, as a text, and not from a variable.
  bool tools_in_system = false;
};

// Never throws: of a template that shows nothing the form is the first that is tried. `tokenizer`
// may be null (no special tokens). Takes at most some thirty
// renderings.
HistoryForm find_history_form(const ChatTemplate& chat_template, const Tokenizer* tokenizer);

// Calls that stand in messages' contents, which hold places for them until the prompt is rendered:
// the calls' markers are special tokens, and what else they spell is text.
struct PlacedCalls {
  std::string sign = {};  // the place of calls[i] is: sign, i, sign
  std::vector<SpelledCalls> calls = {};
};

struct FittedMessages {
  Json messages = Json::array();
  PlacedCalls placed = {};
};

// Messages (in OpenAI's form, arguments as objects or as texts) as that form has them. `tools` (in
// OpenAI's form) go into the system message where they belong there; `variables` are the further
// ones of the template. Arguments that are no JSON object, which a model made up, stay the text
// that they are, in calls that stand in the content, too. A result that goes to the role `user`, or
// is joined with others, has its tool's name before it.
// Throws ApiError (400) for a call that has to stand in the content and cannot be spelled: the
// model's form of calls is not known or not one that is spelled, or the tool's name is none of its.
FittedMessages fitted(Json messages, const Json& tools, const Json& variables,
                      const HistoryForm& form, const ReplyFormat& format);

// Puts calls into a prompt that was rendered of fitted messages. Where messages are guarded,
// special tokens that the calls spell besides their markers are text. `tokenizer` may be null where
// they are not.
void put_calls(const PlacedCalls& placed, const Tokenizer* tokenizer, MessageGuard guard,
               ChatPrompt& prompt);

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_HISTORY_FORM_H_
