// SPDX-License-Identifier: Apache-2.0
#include "server/endpoints/chat_sink.h"

#include <utility>

#include "server/requests/chat_request.h"

namespace outrider::server {
namespace {

using Kind = ReplyEvent::Kind;

}  // namespace

ChatSink::ChatSink(std::shared_ptr<const ServedModel> model, std::shared_ptr<HttpReply> reply,
                   const OpenAiStyle& style, std::int64_t prompt_tokens, int n_choices)
    : model_(std::move(model)),
      style_(style),
      writer_(std::move(reply), model_->name(), "chatcmpl-", "chat.completion",
              "chat.completion.chunk"),
      choices_(static_cast<std::size_t>(n_choices)) {
  usage_.prompt_tokens = prompt_tokens;
  writer_.show(style.trace);
}

// The entries so far, which are removed.
Json ChatSink::log_probs_json(Choice& choice) const {
  if (style_.log_probs < 0) return nullptr;
  return {{"content", std::exchange(choice.log_probs, Json::array())}, {"refusal", nullptr}};
}

void ChatSink::send_delta(int index, Json delta, const char* finish_reason) {
  Choice& choice = of(index);
  Json one;
  one["index"] = index;
  if (!std::exchange(choice.has_role, true)) {
    Json first = {{"role", "assistant"}};
    first.update(delta);
    delta = std::move(first);
  }
  one["delta"] = std::move(delta);
  one["logprobs"] = choice.log_probs.empty() ? Json() : log_probs_json(choice);
  one["finish_reason"] = finish_reason == nullptr ? Json() : Json(finish_reason);
  writer_.write_choice(std::move(one), style_.include_usage);
}

void ChatSink::token(int index, const TokenEvent& event) {
  if (style_.log_probs < 0) return;
  of(index).log_probs.push_back(log_prob_entry(event, model_->tokenizer()));
}

// For an unstreamed answer: an incomplete call is content.
void ChatSink::keep(Choice& choice, const ReplyEvent& event) {
  switch (event.kind) {
    case Kind::content:
      choice.content += event.text;
      break;
    case Kind::reasoning:
      choice.reasoning += event.text;
      break;
    case Kind::call_begin:
      choice.calls.push_back(
          {.id = std::string(event.id), .name = std::string(event.name), .arguments = {}});
      break;
    case Kind::call_arguments:
      choice.calls.back().arguments += event.text;
      break;
    case Kind::call_end:
      if (!event.complete) return choice.calls.pop_back();
      if (choice.calls.back().id.empty()) choice.calls.back().id = event.id;
      if (choice.calls.back().id.empty()) choice.calls.back().id = new_call_id(*model_);
      break;
  }
}

void ChatSink::event(int index, const ReplyEvent& event) {
  if (!style_.streams) return keep(of(index), event);
  switch (event.kind) {
    case Kind::content:
      // Clients have received it as a call that never ended.
      if (!event.of_broken_call) send_delta(index, {{"content", event.text}}, nullptr);
      break;
    case Kind::reasoning:
      send_delta(index, {{"reasoning_content", event.text}}, nullptr);
      break;
    case Kind::call_begin: {
      Json call;
      call["index"] = event.call;
      call["id"] = event.id.empty() ? new_call_id(*model_) : std::string(event.id);
      call["type"] = "function";
      call["function"] = {{"name", event.name}, {"arguments", ""}};
      send_delta(index, {{"tool_calls", Json::array({std::move(call)})}}, nullptr);
      break;
    }
    case Kind::call_arguments: {
      Json call;
      call["index"] = event.call;
      call["function"] = {{"arguments", event.text}};
      send_delta(index, {{"tool_calls", Json::array({std::move(call)})}}, nullptr);
      break;
    }
    case Kind::call_end:
      break;
  }
}

void ChatSink::end(int index, const GenerateResult& result, int n_calls) {
  usage_.add(result);
  Choice& choice = of(index);
  // A truncated reply has its complete calls, and reports the truncation.
  const bool calls = n_calls > 0 && result.finish_reason == FinishReason::stop;
  choice.reason = calls ? "tool_calls" : finish_reason_name(result.finish_reason);
  if (style_.streams) send_delta(index, Json::object(), choice.reason);
}

void ChatSink::all_ended() {
  if (style_.streams) return writer_.end_stream(style_.include_usage ? &usage_ : nullptr);
  Json choices = Json::array();
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    Choice& choice = choices_[i];
    Json message = {{"role", "assistant"}};
    message["content"] =
        choice.content.empty() && !choice.calls.empty() ? Json() : Json(choice.content);
    message["refusal"] = nullptr;
    if (!choice.reasoning.empty()) message["reasoning_content"] = choice.reasoning;
    for (const ToolCall& call : choice.calls) {
      Json one;
      one["id"] = call.id;
      one["type"] = "function";
      one["function"] = {{"name", call.name}, {"arguments", call.arguments}};
      message["tool_calls"].push_back(std::move(one));
    }
    Json one;
    one["index"] = i;
    one["message"] = std::move(message);
    one["logprobs"] = log_probs_json(choice);
    one["finish_reason"] = choice.reason;
    choices.push_back(std::move(one));
  }
  writer_.send(std::move(choices), usage_);
}

void ChatSink::failed(const ApiError& error) { writer_.fail(error); }

}  // namespace outrider::server
