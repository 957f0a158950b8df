// A conversation as something to generate from.
#ifndef OUTRIDER_APPS_CHAT_PROMPT_H_
#define OUTRIDER_APPS_CHAT_PROMPT_H_

#include <CLI/CLI.hpp>
#include <span>

#include "outrider/chat.h"
#include "outrider/generate.h"

namespace outrider::cli {

// The request for the assistant's next turn: `options` with the template's turn ends added (as
// tokens where they are tokens, else as texts; neither with ignore_eos). Throws Error where the
// template refuses the messages.
GenerateRequest chat_request(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                             std::span<const ChatMessage> messages, MessageGuard guard,
                             GenerateOptions options);

// --safe-messages.
CLI::Option* add_guard_flag(CLI::App& app, MessageGuard& guard, const char* group);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_CHAT_PROMPT_H_
