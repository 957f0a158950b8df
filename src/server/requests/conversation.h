// SPDX-License-Identifier: Apache-2.0
// Turns the messages of a chat request into a prompt.
#ifndef OUTRIDER_SERVER_REQUESTS_CONVERSATION_H_
#define OUTRIDER_SERVER_REQUESTS_CONVERSATION_H_

#include <string>
#include <vector>

#include "outrider/types.h"
#include "server/requests/json_fields.h"
#include "server/served_model.h"

namespace outrider::server {

struct Conversation {
  Json messages = Json::array();    // in OpenAI's form; render() adapts them to the template
  Json tools = Json::array();       // in OpenAI's form; empty: none
  Json variables = Json::object();  // further variables of the template (chat_template_kwargs)
  bool add_generation_prompt = true;
};

// Reads `messages`, `tools` and `chat_template_kwargs`. Contents in parts are joined to one text, a
// line each. Throws ApiError (400) for parts that are not text (images, audio).
Conversation read_conversation(JsonFields& body);

// A list of parts as one text, a line each. Throws ApiError (400) beginning with the path.
std::string joined_parts(const Json& parts, const std::string& path);

// Whether the model should reason, under both names that templates use: `enable_thinking` (Qwen,
// GLM, SmolLM3) and `thinking` (DeepSeek-V3.1, Granite).
void set_thinking(Conversation& conversation, bool thinks);

// Messages are adapted to the template (HistoryForm). Throws Error with the template's message if
// it refuses them. Special tokens spelled in messages are plain text, unless the server was
// configured to trust them (ServedOptions).
ChatPrompt render(const ServedModel& model, const Conversation& conversation);
std::vector<TokenId> encode(const ServedModel& model, const Conversation& conversation);

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_REQUESTS_CONVERSATION_H_
