// SPDX-License-Identifier: Apache-2.0
#include "server/endpoints/completion_sink.h"

#include <algorithm>
#include <utility>

namespace outrider::server {

CompletionSink::CompletionSink(std::shared_ptr<const ServedModel> model,
                               std::shared_ptr<HttpReply> reply, const OpenAiStyle& style,
                               std::int64_t prompt_tokens, int n_choices, std::string echo)
    : model_(std::move(model)),
      style_(style),
      writer_(std::move(reply), model_->name(), "cmpl-", "text_completion", "text_completion"),
      choices_(static_cast<std::size_t>(n_choices)) {
  usage_.prompt_tokens = prompt_tokens;
  writer_.show(style.trace);
  for (Choice& choice : choices_) choice.text = echo;
}

// The entries so far, which are removed: parallel lists.
Json CompletionSink::log_probs_json(Choice& choice) const {
  if (style_.log_probs < 0) return nullptr;
  Json entries = std::exchange(choice.log_probs, Json::array());
  Json json;
  json["tokens"] = Json::array();
  json["token_logprobs"] = Json::array();
  json["top_logprobs"] = Json::array();
  json["text_offset"] = Json::array();
  for (Json& entry : entries) {
    Json top = Json::object();
    for (const Json& one : entry["top_logprobs"]) {
      top[one["token"].get<std::string>()] = one["logprob"];
    }
    json["text_offset"].push_back(choice.n_offset);
    choice.n_offset += entry["bytes"].size();
    json["tokens"].push_back(std::move(entry["token"]));
    json["token_logprobs"].push_back(std::move(entry["logprob"]));
    json["top_logprobs"].push_back(std::move(top));
  }
  return json;
}

void CompletionSink::send_chunk(int index, std::string_view text, const char* finish_reason) {
  Choice& choice = choices_[static_cast<std::size_t>(index)];
  Json one;
  one["index"] = index;
  one["text"] = text;
  one["logprobs"] = choice.log_probs.empty() ? Json() : log_probs_json(choice);
  one["finish_reason"] = finish_reason == nullptr ? Json() : Json(finish_reason);
  writer_.write_choice(std::move(one), style_.include_usage);
}

void CompletionSink::token(int index, const TokenEvent& event) {
  Choice& choice = choices_[static_cast<std::size_t>(index)];
  if (style_.log_probs >= 0 && !event.ends) {
    choice.log_probs.push_back(log_prob_entry(event, model_->tokenizer()));
  }
  if (!style_.streams) return;
  choice.n_streamed += event.text.size();
  if (!event.text.empty()) send_chunk(index, event.text, nullptr);
}

void CompletionSink::end(int index, GenerateResult result) {
  usage_.add(result);
  Choice& choice = choices_[static_cast<std::size_t>(index)];
  choice.reason = result.finish_reason;
  if (!style_.streams) {
    choice.text += result.text;
    return;
  }
  // Text held back until the end is sent with the finish reason.
  const std::string_view text = result.text;
  if (text.size() > choice.n_streamed || !choice.log_probs.empty()) {
    send_chunk(index, text.substr(std::min(choice.n_streamed, text.size())), nullptr);
  }
  send_chunk(index, {}, finish_reason_name(choice.reason));
}

void CompletionSink::all_ended() {
  if (style_.streams) return writer_.end_stream(style_.include_usage ? &usage_ : nullptr);
  Json choices = Json::array();
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    Json one;
    one["index"] = i;
    one["text"] = choices_[i].text;
    one["logprobs"] = log_probs_json(choices_[i]);
    one["finish_reason"] = finish_reason_name(choices_[i].reason);
    choices.push_back(std::move(one));
  }
  writer_.send(std::move(choices), usage_);
}

void CompletionSink::failed(const ApiError& error) { writer_.fail(error); }

}  // namespace outrider::server
