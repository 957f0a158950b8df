// Conversations as prompts, by the model's own chat template.
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
  std::string role;  // "system", "user", "assistant", or what else the template knows
  std::string content;
};

struct ChatOptions {
  // The prompt ends with what begins the assistant's turn.
  bool add_generation_prompt = true;
  // A JSON array of the functions that the model may call, as its template wants them; "": none.
  std::string tools = {};
  // A JSON object of further variables of the template ("enable_thinking", "date_string"); they
  // replace others of their names. "": none.
  std::string variables = {};
  TemplateClock clock = local_time;
};

// The chat template stored with a model, or the one it has for conversations with tools. Throws
// Error if there is none, or if it cannot be read. Thread-safe, as all here.
ChatTemplate chat_template_of(const Tokenizer& tokenizer, bool with_tools = false);

// The prompt of a conversation, special tokens spelled out, a leading beginning-of-sequence
// included where the template wants one: encode it with add_special = false. Throws Error as
// ChatTemplate::render does; a template that refuses the roles says so in its own words.
std::string render_chat(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                        std::span<const ChatMessage> messages, const ChatOptions& options = {});

// A prompt, and which parts of it are text whatever special tokens they spell: ranges in ascending
// order. Tokenizer::encode_with_literals(text, false, literals) gives its ids.
struct ChatPrompt {
  std::string text;
  std::vector<TextRange> literals = {};
};
// render_chat of messages as a JSON array, whose objects may have all that the template reads.
// Where messages are guarded, a special token that a text in one spells (its content, the arguments
// of its calls) is text: the prompt's special tokens are those that the template itself writes
// around neutral texts. A prompt for which the template makes others out of a text, and a role or
// a name of a member that spells one, throws Error.
enum class MessageGuard { none, special_tokens };
ChatPrompt render_chat_json(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                            std::string_view messages, MessageGuard guard,
                            const ChatOptions& options = {});

// The ids of that prompt.
std::vector<TokenId> encode_chat(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                                 std::span<const ChatMessage> messages, MessageGuard guard,
                                 const ChatOptions& options = {});

// The variables that render_chat gives, as a JSON object for ChatTemplate::render. `messages` is a
// JSON array whose objects may have all that the template reads (tool_calls, parts of contents). No
// tokenizer (nullptr): no special tokens. Throws Error where one of the texts is no JSON of its
// kind.
//
// As in Hugging Face transformers: messages, tools and documents (none where not given),
// add_generation_prompt, and the special tokens by their names (bos_token, ...; an empty text for
// bos_token and eos_token where the model has none).
std::string chat_variables(const Tokenizer* tokenizer, std::string_view messages,
                           const ChatOptions& options = {});

// Texts that end the assistant's turn besides the model's end tokens: what the template spells
// behind the assistant's words, if that is known to end turns or is a special token. At most one.
std::vector<std::string> turn_ends(const ChatTemplate& chat_template, const Tokenizer& tokenizer);

}  // namespace outrider

#endif  // OUTRIDER_CHAT_H_
