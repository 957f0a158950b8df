#include "server/chat_request.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "reply/tool_grammar.h"
#include "server/answer_json.h"
#include "server/api_error.h"

namespace outrider::server {
namespace {

// The tools that the model is told of; null: none.
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

}  // namespace

PreparedChat prepare(const ServedModel& model, ChatRequest request) {
  PreparedChat chat;
  chat.reading.tools = tools_of(model, request);
  chat.reading.calls = chat.reading.tools != nullptr;
  const std::string text = render(model, request.conversation);
  chat.reading.in_reasoning = opens_reasoning(model.reply_format(), text);
  std::vector<TokenId> prompt = model.tokenizer().encode(text, false);
  chat.n_prompt = static_cast<std::int64_t>(prompt.size());
  chat.speculation = request.fields.speculation;

  GenerateOptions& options = request.fields.options;
  add_turn_ends(model, options);
  options.shown_tokens = special_markers(model.reply_format(), model.tokenizer());
  options.grammar = request.form;
  chat.requests =
      requests_of(model, std::move(prompt), std::move(options), request.fields.n_choices);
  return chat;
}

void run(const std::shared_ptr<const ServedModel>& model, PreparedChat chat,
         const std::shared_ptr<HttpReply>& reply, std::shared_ptr<ReplySink> sink) {
  const int n_choices = static_cast<int>(chat.requests.size());
  run_texts(model, std::move(chat.requests), chat.speculation, reply,
            reply_reader(model->reply_format(), chat.reading, n_choices, std::move(sink)));
}

std::string new_call_id(const ServedModel& model) {
  constexpr std::size_t kMistral = 9;
  std::string id = new_id("call_");
  if (!model.reply_format().name.starts_with("mistral")) return id;
  return id.substr(id.size() - kMistral);
}

}  // namespace outrider::server
