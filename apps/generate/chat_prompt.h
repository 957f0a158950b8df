// SPDX-License-Identifier: Apache-2.0
// Turns a conversation into a request to generate.
#ifndef OUTRIDER_APPS_GENERATE_CHAT_PROMPT_H_
#define OUTRIDER_APPS_GENERATE_CHAT_PROMPT_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <span>
#include <string>

#include "outrider/chat.h"
#include "outrider/generate.h"

namespace outrider::cli {

// The parts of a conversation other than its messages.
struct ConversationFlags {
  std::optional<std::string> system = {};  // empty: an empty message; nullopt: the model's default
  std::string tools_file = {};
  std::string tools = {};  // the file's contents
  MessageGuard guard = MessageGuard::none;
};
// --system, --tools and --safe-messages. `needed`, if not null, is a flag that they require.
void add_conversation_flags(CLI::App& app, ConversationFlags& flags, const char* group,
                            CLI::Option* needed = nullptr);
// Reads the tools file and checks both values. Throws Error if the file does not hold a JSON array.
void read_conversation_flags(ConversationFlags& flags);

// The model's template for such a conversation: the template for tools if there are tools.
ChatTemplate chat_template_of(const Tokenizer& tokenizer, const ConversationFlags& flags);

// The request for the assistant's next turn: `options` with the template's turn ends added (as
// tokens if they are tokens, else as texts; neither with ignore_eos). The system message is not
// added. Throws Error if the template refuses the messages.
GenerateRequest chat_request(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                             std::span<const ChatMessage> messages, const ConversationFlags& flags,
                             GenerateOptions options);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_GENERATE_CHAT_PROMPT_H_
