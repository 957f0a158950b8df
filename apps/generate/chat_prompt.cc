// SPDX-License-Identifier: Apache-2.0
#include "apps/generate/chat_prompt.h"

#include <cstdint>
#include <string>
#include <utility>

#include "apps/cli/flag_values.h"

namespace outrider::cli {

void add_conversation_flags(CLI::App& app, ConversationFlags& flags, const char* group,
                            CLI::Option* needed) {
  CLI::Option* const options[] = {
      app.add_option("--system", flags.system, "The system message (default: the model's own)")
          ->type_name("TEXT"),
      add_path(app, "--tools", flags.tools_file, "FILE",
               "A JSON list of functions that the model may call, as its template wants them"),
      app.add_flag_function(
          "--safe-messages", [&flags](std::int64_t) { flags.guard = MessageGuard::special_tokens; },
          "Special tokens that a message spells are text and cannot end a turn")};
  for (CLI::Option* option : options) {
    option->group(group);
    if (needed != nullptr) option->needs(needed);
  }
}

void read_conversation_flags(ConversationFlags& flags) {
  if (flags.system) require_text(*flags.system, "--system");
  if (flags.tools_file.empty()) return;
  flags.tools = read_text(flags.tools_file);
  ChatOptions options;
  options.tools = flags.tools;
  chat_variables(nullptr, "[]", options);
}

ChatTemplate chat_template_of(const Tokenizer& tokenizer, const ConversationFlags& flags) {
  return outrider::chat_template_of(tokenizer, !flags.tools_file.empty());
}

GenerateRequest chat_request(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                             std::span<const ChatMessage> messages, const ConversationFlags& flags,
                             GenerateOptions options) {
  if (!options.ignore_eos) {
    for (std::string& marker : turn_ends(chat_template, tokenizer)) {
      // A special token never appears in the text, so it is matched as a token.
      if (const auto id = tokenizer.find(marker)) {
        options.stop_tokens.push_back(*id);
      } else {
        options.stop_strings.push_back(std::move(marker));
      }
    }
  }
  ChatOptions chat;
  chat.tools = flags.tools;
  return {.prompt = encode_chat(chat_template, tokenizer, messages, flags.guard, chat),
          .options = std::move(options)};
}

}  // namespace outrider::cli
