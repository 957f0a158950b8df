// SPDX-License-Identifier: Apache-2.0
#include "server/requests/chat_request.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "reply/reply_form.h"
#include "server/answers/answer_json.h"
#include "server/api_error.h"

namespace outrider::server {
namespace {

// The tools offered to the model; null: none.
std::shared_ptr<const ToolSet> tools_of(const ServedModel& model, ChatRequest& request) {
  const bool must_call = request.tool_choice.kind == ToolChoice::Kind::required ||
                         request.tool_choice.kind == ToolChoice::Kind::named;
  if (request.conversation.tools.empty()) {
    if (must_call) throw ApiError(400, "tool_choice: expected tools beside it, got none", "tools");
    return nullptr;
  }
  if (request.tool_choice.kind == ToolChoice::Kind::none) {
    request.conversation.tools = Json::array();
    return nullptr;
  }
  const ReplyFormat& format = model.reply_format();
  if (!format.template_takes_tools || format.calls.syntax == CallSyntax::none) {
    throw ApiError(400, "tools: the chat template of this model takes none", "tools");
  }
  auto tools = std::make_shared<const ToolSet>(dumped(request.conversation.tools));
  if (request.tool_choice.kind == ToolChoice::Kind::named &&
      tools->find(request.tool_choice.name) == nullptr) {
    throw ApiError(400,
                   "tool_choice: expected one of the tools, got '" + request.tool_choice.name + "'",
                   "tool_choice");
  }
  return tools;
}

void add_turn_ends(const ServedModel& model, GenerateOptions& options) {
  if (options.ignore_eos) return;
  const auto tokens = model.turn_end_tokens();
  options.stop_tokens.insert(options.stop_tokens.end(), tokens.begin(), tokens.end());
  const auto texts = model.turn_end_texts();
  options.stop_strings.insert(options.stop_strings.end(), texts.begin(), texts.end());
}

// The form of the whole reply; null: any.
std::shared_ptr<const Grammar> form_of(const ServedModel& model, const ChatRequest& request,
                                       const ToolSet* tools, bool in_reasoning) {
  using Kind = ToolChoice::Kind;
  const bool must_call =
      request.tool_choice.kind == Kind::required || request.tool_choice.kind == Kind::named;
  if (must_call && request.form != nullptr) {
    throw ApiError(400, "tool_choice: expected no form of the answer beside a call, got one",
                   "tool_choice");
  }
  return make_reply_form(model.reply_format(), tools,
                         {.must_call = must_call,
                          .name = request.tool_choice.name,
                          .parallel = request.parallel_calls,
                          .answer = request.form,
                          .in_reasoning = in_reasoning,
                          .behind_reasoning = request.reasoning_budget >= 0});
}

// Limits reasoning to `budget` tokens after its opening marker. Does nothing for a model without
// reasoning.
void limit_reasoning(const ServedModel& model, int budget, GenerateOptions& options) {
  const std::string& end = model.reply_format().reasoning.end;
  const auto token = model.tokenizer().find(end);
  if (!token) {
    throw ApiError(400,
                   fmt::format("reasoning budget: expected reasoning that ends with one token, and "
                               "this model's {} is none",
                               end),
                   "reasoning_budget");
  }
  options.opening_end = *token;
  options.max_opening = budget;
}

}  // namespace

PreparedChat prepare(const ServedModel& model, ChatRequest request) {
  PreparedChat chat;
  chat.reading.tools = tools_of(model, request);
  chat.reading.calls = chat.reading.tools != nullptr;
  const ReplyFormat& format = model.reply_format();
  if (format.reasoning.end.empty()) request.reasoning_budget = -1;
  ChatPrompt rendered = render(model, request.conversation);
  chat.reading.in_reasoning = opens_reasoning(format, rendered.text);
  if (request.reasoning_budget >= 0 && !chat.reading.in_reasoning) {
    rendered.text += format.reasoning.begin + "\n";  // the budget counts from the opening marker
    chat.reading.in_reasoning = true;
  }
  std::vector<TokenId> prompt =
      model.tokenizer().encode_with_literals(rendered.text, false, rendered.literals);
  chat.n_prompt = static_cast<std::int64_t>(prompt.size());
  chat.texts.speculation = request.fields.speculation;
  chat.texts.slot = request.fields.slot;

  GenerateOptions& options = request.fields.options;
  add_turn_ends(model, options);
  options.shown_tokens = marker_tokens(format, model.tokenizer());
  if (request.reasoning_budget >= 0) limit_reasoning(model, request.reasoning_budget, options);
  options.grammar = form_of(model, request, chat.reading.tools.get(), chat.reading.in_reasoning);
  chat.texts.requests =
      requests_of(model, std::move(prompt), std::move(options), request.fields.n_choices);
  return chat;
}

void run(const std::shared_ptr<const ServedModel>& model, PreparedChat chat,
         const std::shared_ptr<HttpReply>& reply, std::shared_ptr<ReplySink> sink) {
  const int n_choices = static_cast<int>(chat.texts.requests.size());
  run_texts(model, std::move(chat.texts), reply,
            reply_reader(model->reply_format(), chat.reading, n_choices, std::move(sink)));
}

std::string new_call_id(const ServedModel& model) {
  constexpr std::size_t kMistral = 9;
  std::string id = new_id("call_");
  if (!model.reply_format().name.starts_with("mistral")) return id;
  return id.substr(id.size() - kMistral);
}

}  // namespace outrider::server
