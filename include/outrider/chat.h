// Conversations as prompts.
#ifndef OUTRIDER_CHAT_H_
#define OUTRIDER_CHAT_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/tokenizer.h"

namespace outrider {

struct ChatMessage {
  std::string role;  // "system", "user" or "assistant"
  std::string content;
};

// The family of a model's own chat template. Only plain templates are known yet.
enum class ChatFormat { chatml, llama2, llama3 };

// Recognises the stored template by the markers of these families. Throws Error if there is no
// template, or one of another family (naming what is known).
ChatFormat detect_chat_format(const Tokenizer& tokenizer);

// The prompt for the assistant's next turn, special tokens spelled out, a leading
// beginning-of-sequence included where the family wants one: encode it with add_special = false.
std::string render_chat(ChatFormat format, const Tokenizer& tokenizer,
                        std::span<const ChatMessage> messages);

// Texts that end the assistant's turn besides the model's end tokens.
std::vector<std::string> turn_end_markers(ChatFormat format);

}  // namespace outrider

#endif  // OUTRIDER_CHAT_H_
