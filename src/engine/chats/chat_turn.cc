// SPDX-License-Identifier: Apache-2.0
#include "outrider/chat_turn.h"

#include <optional>
#include <utility>

#include "outrider/error.h"
#include "reply/reply_form.h"
#include "reply/reply_format.h"
#include "reply/reply_parser.h"
#include "reply/tool_set.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "chat";

bool must_call(const ToolChoice& choice) {
  return choice.kind == ToolChoice::Kind::required || choice.kind == ToolChoice::Kind::named;
}

// The tools offered to the model; null: none.
std::shared_ptr<const ToolSet> tools_of(const ReplyFormat& format, const std::string& text,
                                        const ToolChoice& choice) {
  if (choice.kind == ToolChoice::Kind::none) return nullptr;
  auto tools = std::make_shared<const ToolSet>(text);
  if (tools->empty()) {
    if (must_call(choice)) throw UsageError(kOperation, "tool choice", "tools beside it", "none");
    return nullptr;
  }
  if (!format.template_takes_tools || format.calls.syntax == CallSyntax::none) {
    throw UsageError(kOperation, "tools", "none: the chat template of this model takes none",
                     "some");
  }
  if (choice.kind == ToolChoice::Kind::named && tools->find(choice.name) == nullptr) {
    throw UsageError(kOperation, "tool choice", "one of the tools", choice.name);
  }
  return tools;
}

}  // namespace

struct ChatTurn::State {
  ReplyFormat format;
  std::shared_ptr<const ToolSet> tools;
  ToolChoice choice;
  bool parallel_calls = true;
  bool in_reasoning = false;
  std::string prompt;
  std::vector<TokenId> ids;  // of it
  std::vector<TokenId> stop_tokens;
  std::vector<std::string> stop_strings;
  std::vector<TokenId> shown_tokens;
};

ChatTurn::ChatTurn(const Tokenizer& tokenizer, const ChatTurnOptions& options)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  const std::string& text =
      options.chat.tools.empty() ? tokenizer.chat_template() : tokenizer.tool_template();
  state.format = find_reply_format(text, &tokenizer);
  state.choice = options.tool_choice;
  state.parallel_calls = options.parallel_calls;
  state.tools = tools_of(state.format, options.chat.tools, options.tool_choice);

  ChatOptions chat = options.chat;
  if (state.tools == nullptr) chat.tools.clear();
  const ChatTemplate chat_template = chat_template_of(tokenizer, state.tools != nullptr);
  ChatPrompt prompt =
      render_chat_json(chat_template, tokenizer, options.messages, options.guard, chat);
  state.ids = tokenizer.encode_with_literals(prompt.text, false, prompt.literals);
  state.in_reasoning = opens_reasoning(state.format, prompt.text);
  state.prompt = std::move(prompt.text);

  for (std::string& end : turn_ends(chat_template, tokenizer)) {
    // A special token never appears in the text, so it is matched as a token.
    if (const std::optional<TokenId> id = tokenizer.find(end)) {
      state.stop_tokens.push_back(*id);
    } else {
      state.stop_strings.push_back(std::move(end));
    }
  }
  state.shown_tokens = marker_tokens(state.format, tokenizer);
}

ChatTurn::~ChatTurn() = default;
ChatTurn::ChatTurn(ChatTurn&&) noexcept = default;
ChatTurn& ChatTurn::operator=(ChatTurn&&) noexcept = default;

const std::string& ChatTurn::prompt() const { return state_->prompt; }

GenerateRequest ChatTurn::request(GenerateOptions options) const {
  const State& state = *state_;
  if (!options.ignore_eos) {
    options.stop_tokens.insert(options.stop_tokens.end(), state.stop_tokens.begin(),
                               state.stop_tokens.end());
    options.stop_strings.insert(options.stop_strings.end(), state.stop_strings.begin(),
                                state.stop_strings.end());
  }
  options.shown_tokens.insert(options.shown_tokens.end(), state.shown_tokens.begin(),
                              state.shown_tokens.end());
  if (must_call(state.choice) && options.grammar != nullptr) {
    throw UsageError(kOperation, "grammar", "none beside a call that must be", "one");
  }
  options.grammar = make_reply_form(state.format, state.tools.get(),
                                    {.must_call = must_call(state.choice),
                                     .name = state.choice.name,
                                     .parallel = state.parallel_calls,
                                     .answer = options.grammar,
                                     .in_reasoning = state.in_reasoning});
  return {.prompt = state.ids, .options = std::move(options)};
}

ReplyReader ChatTurn::reader(ReplyReader::Callback on_event) const {
  ReplyParserOptions options;
  options.tools = state_->tools;
  options.calls = state_->tools != nullptr;
  options.in_reasoning = state_->in_reasoning;
  return {state_->format, options, std::move(on_event)};
}

Reply ChatTurn::read(std::string_view text) const {
  Reply reply;
  reader([&reply](const ReplyEvent& event) {
    switch (event.kind) {
      case ReplyEvent::Kind::content:
        reply.content += event.text;
        break;
      case ReplyEvent::Kind::reasoning:
        reply.reasoning += event.text;
        break;
      case ReplyEvent::Kind::call_begin:
        reply.calls.push_back(
            {.id = std::string(event.id), .name = std::string(event.name), .arguments = {}});
        break;
      case ReplyEvent::Kind::call_arguments:
        reply.calls.back().arguments += event.text;
        break;
      case ReplyEvent::Kind::call_end:
        if (!event.complete) return reply.calls.pop_back();
        if (!event.id.empty()) reply.calls.back().id = event.id;
        break;
    }
  }).finish(text);
  return reply;
}

}  // namespace outrider
