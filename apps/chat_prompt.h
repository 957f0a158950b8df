// A conversation as something to generate from.
#ifndef OUTRIDER_APPS_CHAT_PROMPT_H_
#define OUTRIDER_APPS_CHAT_PROMPT_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <span>
#include <string>

#include "outrider/chat.h"
#include "outrider/generate.h"

namespace outrider::cli {

// What a conversation is made of besides its messages.
struct ConversationFlags {
  std::optional<std::string> system = {};  // empty: an empty message; nullopt: the model's own
  std::string tools_file = {};
  std::string tools = {};  // what is in the file
  MessageGuard guard = MessageGuard::none;
};
// --system, --tools and --safe-messages. `needed`, if there is one, is a flag that they need.
void add_conversation_flags(CLI::App& app, ConversationFlags& flags, const char* group,
                            CLI::Option* needed = nullptr);
// Reads the file and looks at both. Throws Error where it holds no JSON array.
void read_conversation_flags(ConversationFlags& flags);

// The model's template for such a conversation: the one for tools where there are tools.
ChatTemplate chat_template_of(const Tokenizer& tokenizer, const ConversationFlags& flags);

// The request for the assistant's next turn: `options` with the template's turn ends added (as
// tokens where they are tokens, else as texts; neither with ignore_eos). The system message is not
// added. Throws Error where the template refuses the messages.
GenerateRequest chat_request(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                             std::span<const ChatMessage> messages, const ConversationFlags& flags,
                             GenerateOptions options);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_CHAT_PROMPT_H_
