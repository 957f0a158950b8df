// Prompts that a chat model writes itself. Behind its template's opening of a user's turn it says
// what users say (Magpie; Xu et al. 2024, arXiv 2406.08464, section 2).
#ifndef OUTRIDER_APPS_OWN_PROMPTS_H_
#define OUTRIDER_APPS_OWN_PROMPTS_H_

#include <optional>
#include <string>

#include "chat_prompt.h"
#include "outrider/chat.h"
#include "outrider/generate.h"

namespace outrider::cli {

// The request for a user's first turn: `options`, but sampled at temperature 1, and ending where
// the template ends such a turn. Throws Error where the template refuses a conversation or leaves
// its text out.
GenerateRequest own_prompt_request(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                                   const ConversationFlags& flags, GenerateOptions options);

// What was written, without the blanks around it; nullopt if it is empty or has no end.
std::optional<std::string> own_prompt_of(const GenerateResult& result);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_OWN_PROMPTS_H_
