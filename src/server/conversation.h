// The messages of a chat request as a prompt.
#ifndef OUTRIDER_SERVER_CONVERSATION_H_
#define OUTRIDER_SERVER_CONVERSATION_H_

#include <string>
#include <vector>

#include "outrider/types.h"
#include "server/json_fields.h"
#include "server/served_model.h"

namespace outrider::server {

struct Conversation {
  Json messages = Json::array();    // OpenAI's form; render() fits them to the template
  Json tools = Json::array();       // OpenAI's form; empty: none
  Json variables = Json::object();  // further ones of the template (chat_template_kwargs)
  bool add_generation_prompt = true;
};

// Reads `messages`, `tools` and `chat_template_kwargs`. Contents in parts become one text, a line
// each. Throws ApiError (400) for parts that are no text (pictures, sounds).
Conversation read_conversation(JsonFields& body);

// A list of parts as one text, a line each. Throws ApiError (400) that begins with the path.
std::string joined_parts(const Json& parts, const std::string& path);

// Whether the model is to reason, in the words of all templates that ask: `enable_thinking` (Qwen,
// GLM, SmolLM3) and `thinking` (DeepSeek-V3.1, Granite).
void set_thinking(Conversation& conversation, bool thinks);

// Messages are fitted to what the template takes (HistoryForm).
// Throws Error in the template's own words where it refuses the messages. Special tokens that
// messages spell are text, unless the server was told to trust them (ServedOptions).
ChatPrompt render(const ServedModel& model, const Conversation& conversation);
std::vector<TokenId> encode(const ServedModel& model, const Conversation& conversation);

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_CONVERSATION_H_
