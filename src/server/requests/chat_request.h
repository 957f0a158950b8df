// SPDX-License-Identifier: Apache-2.0
// A chat request of any interface, and how it is run.
#ifndef OUTRIDER_SERVER_REQUESTS_CHAT_REQUEST_H_
#define OUTRIDER_SERVER_REQUESTS_CHAT_REQUEST_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "outrider/chat_turn.h"
#include "outrider/grammar.h"
#include "server/answers/replies.h"
#include "server/requests/conversation.h"
#include "server/requests/generation_fields.h"

namespace outrider::server {

struct ChatRequest {
  Conversation conversation;
  GenerationFields fields;
  ToolChoice tool_choice = {};
  bool parallel_calls = true;                     // allow several calls in a reply
  std::shared_ptr<const Grammar> form = nullptr;  // of the answer; null: any
  int reasoning_budget = -1;                      // limit of the tokens of reasoning; -1: no limit
};

// A request ready to run.
struct PreparedChat {
  AskedTexts texts;  // one for each choice
  ReplyParserOptions reading;
  std::int64_t n_prompt = 0;  // tokens
};

// Renders the prompt, and sets what ends a reply and how it is parsed. Throws ApiError (400) for
// what this model does not support, and Error if its template refuses the messages.
PreparedChat prepare(const ServedModel& model, ChatRequest request);

// Starts it and returns at once. Throws as run_texts().
void run(const std::shared_ptr<const ServedModel>& model, PreparedChat chat,
         const std::shared_ptr<HttpReply>& reply, std::shared_ptr<ReplySink> sink);

// A new id for a call, for models whose format has none. For Mistral's it has nine letters and
// digits, since their templates accept nothing else.
std::string new_call_id(const ServedModel& model);

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_REQUESTS_CHAT_REQUEST_H_
