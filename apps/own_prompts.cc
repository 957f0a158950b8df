// SPDX-License-Identifier: Apache-2.0
#include "apps/own_prompts.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "outrider/error.h"
#include "outrider/tokenizer.h"

namespace outrider::cli {
namespace {

// Stands for the user's text while the template is examined; no template contains it.
constexpr std::string_view kUsersWords = "outrider-users-words";
// Of 48 turns that SmolLM2 135M wrote, 39 ended within 96 tokens; the others lost their subject.
constexpr int kMaxOwnPromptTokens = 128;
// Leaves out the rarest tokens, 0.05 together: a small model loses its subject after one of them.
constexpr double kOwnPromptTopP = 0.95;
constexpr std::string_view kBlankBytes = " \t\r\n";

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlankBytes);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlankBytes) - begin + 1);
}

// A special token never appears in the text, so it is matched as a token.
void end_at(std::string_view behind, const Tokenizer& tokenizer, GenerateOptions& options) {
  const std::vector<TextRange> tokens = tokenizer.added_tokens_in(behind);
  if (!tokens.empty()) {
    const std::string spelled(behind.substr(tokens[0].begin, tokens[0].end - tokens[0].begin));
    if (const auto id = tokenizer.find(spelled)) {
      options.stop_tokens.push_back(*id);
      return;
    }
  }
  const std::string_view text = without_blanks(behind);
  if (!text.empty()) options.stop_strings.emplace_back(text.substr(0, text.find('\n')));
}

}  // namespace

GenerateRequest own_prompt_request(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                                   const ConversationFlags& flags, GenerateOptions options) {
  nlohmann::json messages = nlohmann::json::array();
  if (flags.system) messages.push_back({{"role", "system"}, {"content", *flags.system}});
  messages.push_back({{"role", "user"}, {"content", kUsersWords}});
  ChatOptions chat;
  chat.tools = flags.tools;
  const ChatPrompt whole =
      render_chat_json(chat_template, tokenizer, messages.dump(), flags.guard, chat);
  const std::size_t opening = whole.text.rfind(kUsersWords);
  if (opening == std::string::npos) {
    throw Error("write prompts", "chat template", "a prompt with the user's words", "one without");
  }
  std::vector<TextRange> literals;
  for (const TextRange& literal : whole.literals) {
    if (literal.end <= opening) literals.push_back(literal);
  }
  options.sampling = {.temperature = 1, .top_p = kOwnPromptTopP};
  options.max_tokens = kMaxOwnPromptTokens;
  options.ignore_eos = false;
  options.stop_tokens.clear();
  options.stop_strings.clear();
  end_at(std::string_view(whole.text).substr(opening + kUsersWords.size()), tokenizer, options);
  return {.prompt = tokenizer.encode_with_literals(whole.text.substr(0, opening), false, literals),
          .options = std::move(options)};
}

std::optional<std::string> own_prompt_of(const GenerateResult& result) {
  const std::string_view text = without_blanks(result.text);
  if (text.empty() || result.finish_reason != FinishReason::stop) return std::nullopt;
  return std::string(text);
}

}  // namespace outrider::cli
