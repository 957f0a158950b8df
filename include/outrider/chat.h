// SPDX-License-Identifier: Apache-2.0
// Turns conversations into prompts by the model's chat template.
#ifndef OUTRIDER_CHAT_H_
#define OUTRIDER_CHAT_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/chat_template.h"
#include "outrider/tokenizer.h"

namespace outrider {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant", or another that the template accepts
  std::string content;
};

struct ChatOptions {
  // End the prompt with the opening of the assistant's turn.
  bool add_generation_prompt = true;
  // A JSON array of the functions that the model may call, in the form that its template reads. "":
  // none.
  std::string tools = {};
  // A JSON object of further template variables ("enable_thinking", "date_string"). They replace
  // others of the same names. "": none.
  std::string variables = {};
  TemplateClock clock = local_time;
};

// The chat template stored with a model; with_tools: the one for conversations with tools, if there
// is one. Throws Error if there is none or it cannot be parsed. This and all other functions here
// are thread-safe.
ChatTemplate chat_template_of(const Tokenizer& tokenizer, bool with_tools = false);

// Renders a conversation as a prompt with special tokens spelled out, including a leading
// beginning-of-sequence token if the template writes one. Encode it with add_special = false.
// Throws Error as ChatTemplate::render does; if the template refuses the roles, the error carries
// the template's message.
std::string render_chat(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                        std::span<const ChatMessage> messages, const ChatOptions& options = {});

// A prompt, and the ranges of it that are plain text even if they spell special tokens, in
// ascending order. Tokenizer::encode_with_literals(text, false, literals) gives its ids.
struct ChatPrompt {
  std::string text;
  std::vector<TextRange> literals = {};
};
// Renders messages given as a JSON array, whose objects may hold all that the template reads.
//
// MessageGuard::special_tokens treats message texts (content, arguments of calls) as plain text
// even if they spell special tokens. The special tokens of the prompt are those that the template
// writes around neutral texts. Throws Error if the template would write others because of a text,
// or if a role or a member name spells a special token.
enum class MessageGuard { none, special_tokens };
ChatPrompt render_chat_json(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                            std::string_view messages, MessageGuard guard,
                            const ChatOptions& options = {});

// The ids of that prompt.
std::vector<TokenId> encode_chat(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                                 std::span<const ChatMessage> messages, MessageGuard guard,
                                 const ChatOptions& options = {});

// The template variables as a JSON object for ChatTemplate::render. `messages` is a JSON array
// whose objects may hold all that the template reads (tool_calls, content parts). Without a
// tokenizer (nullptr) there are no special tokens. Throws Error if a text is not JSON of its kind.
//
// The variables are those of Hugging Face transformers: messages, tools and documents (none where
// not given), add_generation_prompt, and the special tokens by name (bos_token, ...). bos_token and
// eos_token are empty texts if the model has none.
std::string chat_variables(const Tokenizer* tokenizer, std::string_view messages,
                           const ChatOptions& options = {});

// Texts that end the assistant's turn besides the model's end tokens, at most one: what the
// template writes after the assistant's content, if that is a special token or a known end of a
// turn.
std::vector<std::string> turn_ends(const ChatTemplate& chat_template, const Tokenizer& tokenizer);

}  // namespace outrider

#endif  // OUTRIDER_CHAT_H_
