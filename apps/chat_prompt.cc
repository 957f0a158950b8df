#include "chat_prompt.h"

#include <string>
#include <utility>

namespace outrider::cli {

GenerateRequest chat_request(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                             std::span<const ChatMessage> messages, GenerateOptions options) {
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
  return {.prompt = tokenizer.encode(render_chat(chat_template, tokenizer, messages), false),
          .options = std::move(options)};
}

}  // namespace outrider::cli
