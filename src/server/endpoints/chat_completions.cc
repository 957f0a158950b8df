// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "server/endpoints/chat_sink.h"
#include "server/endpoints/endpoints.h"
#include "server/requests/answer_form.h"
#include "server/requests/chat_request.h"

namespace outrider::server {
namespace {

constexpr int kMaxTopLogProbs = 20;  // OpenAI's limit

// "auto", "none", "required", or {"type": "function", "function": {"name": NAME}}.
ToolChoice read_tool_choice(JsonFields& body) {
  using Kind = ToolChoice::Kind;
  const Json* const choice = body.find("tool_choice");
  if (choice == nullptr || *choice == "auto") return {};
  if (*choice == "none") return {.kind = Kind::none};
  if (*choice == "required") return {.kind = Kind::required};
  if (!choice->is_object()) {
    body.refuse("tool_choice", "auto, none, required or a function", choice->dump());
  }
  JsonFields named(*choice, "tool_choice");
  if (const std::string type = named.require_text("type"); type != "function") {
    named.refuse("type", "function", "'" + type + "'");
  }
  JsonFields function(named.require("function"), "tool_choice.function");
  ToolChoice result{.kind = Kind::named, .name = function.require_text("name")};
  function.finish();
  named.finish();
  return result;
}

}  // namespace

void chat_completions(const Call& call) {
  const ServedModel& model = *call.model;
  JsonFields body(*call.body);
  body.accept({"model", "user", "metadata", "store", "service_tier", "safety_identifier",
               "prompt_cache_key", "cache_prompt"});
  ChatRequest request;
  request.conversation = read_conversation(body);
  request.fields = read_generation_fields(body, model);
  request.tool_choice = read_tool_choice(body);
  request.parallel_calls = body.boolean("parallel_tool_calls").value_or(true);
  request.form = read_answer_form(body);
  constexpr std::int64_t kMaxBudget = std::numeric_limits<int>::max();
  request.reasoning_budget =
      static_cast<int>(body.integer("reasoning_budget", -1, kMaxBudget).value_or(-1));
  if (const auto thinks = body.boolean("enable_thinking")) {
    set_thinking(request.conversation, *thinks);
  }
  if (auto effort = body.text("reasoning_effort")) {
    request.conversation.variables["reasoning_effort"] = *std::move(effort);
  }
  OpenAiStyle style = read_openai_style(body);
  const auto top = body.integer("top_logprobs", 0, kMaxTopLogProbs);
  if (body.boolean("logprobs").value_or(false)) {
    style.log_probs = static_cast<int>(top.value_or(0));
  } else if (top.value_or(0) > 0) {
    body.refuse("top_logprobs", "logprobs to be true beside it", "none");
  }
  body.finish();

  request.fields.options.log_probs = style.log_probs;
  const int n_choices = request.fields.n_choices;
  PreparedChat chat = prepare(model, std::move(request));
  if (style.trace) TokenTrace::watch(style.trace, call.model, chat.texts.requests);
  auto sink = std::make_shared<ChatSink>(call.model, call.reply, style, chat.n_prompt, n_choices);
  run(call.model, std::move(chat), call.reply, std::move(sink));
}

}  // namespace outrider::server
