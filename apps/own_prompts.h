// SPDX-License-Identifier: Apache-2.0
// Prompts that a chat model generates. After the template's opening of a user's turn the model
// generates a typical user message (Magpie; Xu et al. 2024, arXiv 2406.08464, section 2).
#ifndef OUTRIDER_APPS_OWN_PROMPTS_H_
#define OUTRIDER_APPS_OWN_PROMPTS_H_

#include <optional>
#include <string>

#include "apps/generate/chat_prompt.h"
#include "outrider/chat.h"
#include "outrider/generate.h"

namespace outrider::cli {

// The request for a user's first turn: `options`, but sampled at temperature 1, and ending where
// the template ends such a turn. Throws Error if the template refuses a conversation or omits its
// text.
GenerateRequest own_prompt_request(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                                   const ConversationFlags& flags, GenerateOptions options);

// The generated text without surrounding blanks; nullopt if it is empty or has no end.
std::optional<std::string> own_prompt_of(const GenerateResult& result);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_OWN_PROMPTS_H_
