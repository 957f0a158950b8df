#include "chat_prompt.h"

#include <cstdint>
#include <string>
#include <utility>

namespace outrider::cli {

GenerateRequest chat_request(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                             std::span<const ChatMessage> messages, MessageGuard guard,
                             GenerateOptions options) {
  if (!options.ignore_eos) {
    for (std::string& marker : turn_ends(chat_template, tokenizer)) {
      // A special token never shows in the text, so it has to be caught as a token.
      if (const auto id = tokenizer.find(marker)) {
        options.stop_tokens.push_back(*id);
      } else {
        options.stop_strings.push_back(std::move(marker));
      }
    }
  }
  return {.prompt = encode_chat(chat_template, tokenizer, messages, guard),
          .options = std::move(options)};
}

CLI::Option* add_guard_flag(CLI::App& app, MessageGuard& guard, const char* group) {
  return app
      .add_flag_function(
          "--safe-messages", [&guard](std::int64_t) { guard = MessageGuard::special_tokens; },
          "Special tokens that a message spells are text and cannot end a turn")
      ->group(group);
}

}  // namespace outrider::cli
