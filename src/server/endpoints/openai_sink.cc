#include "server/endpoints/openai_sink.h"

#include <utility>

namespace outrider::server {

OpenAiSink::OpenAiSink(std::shared_ptr<const ServedModel> model, std::shared_ptr<HttpReply> reply,
                       OpenAiStyle style, std::int64_t prompt_tokens, int n_choices)
    : model_(std::move(model)),
      reply_(std::move(reply)),
      style_(std::move(style)),
      id_(new_id(style_.chat ? "chatcmpl-" : "cmpl-")),
      created_(std::time(nullptr)),
      choices_(static_cast<std::size_t>(n_choices)) {
  usage_.prompt_tokens = prompt_tokens;
  for (Choice& choice : choices_) choice.text = style_.echo;
}

Json OpenAiSink::head(bool chunk) const {
  Json json;
  json["id"] = id_;
  json["object"] = !style_.chat ? "text_completion"
                   : chunk      ? "chat.completion.chunk"
                                : "chat.completion";
  json["created"] = created_;
  json["model"] = model_->name();
  return json;
}

// Of the entries that are there, which are taken.
Json OpenAiSink::log_probs_json(Choice& choice) const {
  if (style_.log_probs < 0) return nullptr;
  Json entries = std::exchange(choice.log_probs, Json::array());
  if (style_.chat) return {{"content", std::move(entries)}, {"refusal", nullptr}};
  Json json;  // the older form: lists that run side by side
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

void OpenAiSink::begin_stream() {
  if (std::exchange(begun_, true)) return;
  HttpResponse response;
  response.content_type = "text/event-stream";
  response.headers.emplace_back("X-Accel-Buffering", "no");  // proxies pass events on at once
  reply_->begin_stream(std::move(response));
  if (!style_.chat) return;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    Json chunk = head(true);
    chunk["choices"] = {{{"index", i},
                         {"delta", {{"role", "assistant"}, {"content", ""}}},
                         {"logprobs", nullptr},
                         {"finish_reason", nullptr}}};
    reply_->write(sse_event(chunk));
  }
}

void OpenAiSink::send_chunk(int index, std::string_view text, const char* finish_reason) {
  begin_stream();
  Choice& choice = choices_[static_cast<std::size_t>(index)];
  Json one;
  one["index"] = index;
  if (style_.chat) {
    one["delta"] = Json::object();
    if (!text.empty()) one["delta"]["content"] = text;
  } else {
    one["text"] = text;
  }
  one["logprobs"] = choice.log_probs.empty() ? Json() : log_probs_json(choice);
  one["finish_reason"] = finish_reason == nullptr ? Json() : Json(finish_reason);
  Json chunk = head(true);
  chunk["choices"] = Json::array({std::move(one)});
  if (style_.include_usage) chunk["usage"] = nullptr;
  reply_->write(sse_event(chunk));
}

void OpenAiSink::token(int index, const TokenEvent& event) {
  Choice& choice = choices_[static_cast<std::size_t>(index)];
  if (style_.log_probs >= 0 && !event.ends) {
    choice.log_probs.push_back(log_prob_entry(event, model_->tokenizer()));
  }
  if (!style_.streams) return;
  choice.n_streamed += event.text.size();
  if (!event.text.empty()) send_chunk(index, event.text, nullptr);
}

void OpenAiSink::end(int index, GenerateResult result) {
  usage_.add(result);
  Choice& choice = choices_[static_cast<std::size_t>(index)];
  choice.reason = result.finish_reason;
  if (!style_.streams) {
    choice.text += result.text;
    return;
  }
  // What was held back to the end comes with the reason.
  const std::string_view text = result.text;
  if (text.size() > choice.n_streamed || !choice.log_probs.empty()) {
    send_chunk(index, text.substr(std::min(choice.n_streamed, text.size())), nullptr);
  }
  send_chunk(index, {}, finish_reason_name(choice.reason));
}

void OpenAiSink::all_ended() {
  if (style_.streams) {
    if (style_.include_usage) {
      Json chunk = head(true);
      chunk["choices"] = Json::array();
      chunk["usage"] = usage_json(usage_);
      chunk["timings"] = timings_json(usage_);
      reply_->write(sse_event(chunk));
    }
    reply_->write("data: [DONE]\n\n");
    reply_->end_stream();
    return;
  }
  Json json = head(false);
  json["choices"] = Json::array();
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    Json one;
    one["index"] = i;
    if (style_.chat) {
      one["message"] = {{"role", "assistant"}, {"content", choices_[i].text}, {"refusal", nullptr}};
    } else {
      one["text"] = choices_[i].text;
    }
    one["logprobs"] = log_probs_json(choices_[i]);
    one["finish_reason"] = finish_reason_name(choices_[i].reason);
    json["choices"].push_back(std::move(one));
  }
  json["usage"] = usage_json(usage_);
  json["timings"] = timings_json(usage_);
  reply_->send(
      {.status = 200, .content_type = "application/json", .body = dumped(json), .headers = {}});
}

void OpenAiSink::failed(const ApiError& error) {
  if (!begun_) return reply_->send(error_response(error));
  reply_->write("data: " + error_body(error) + "\n\n");
  reply_->end_stream();
}

}  // namespace outrider::server
