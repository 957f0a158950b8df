// SPDX-License-Identifier: Apache-2.0
#include "server/endpoints/responses_sink.h"

#include <utility>

#include "server/api_error.h"
#include "server/requests/chat_request.h"

namespace outrider::server {
namespace {

using Kind = ReplyEvent::Kind;

Json text_part(std::string_view text) {
  return {{"type", "output_text"},
          {"text", text},
          {"annotations", Json::array()},
          {"logprobs", Json::array()}};
}

Json reasoning_part(std::string_view text) { return {{"type", "reasoning_text"}, {"text", text}}; }

}  // namespace

ResponsesSink::ResponsesSink(std::shared_ptr<const ServedModel> model,
                             std::shared_ptr<HttpReply> reply, bool streams,
                             std::int64_t prompt_tokens, Json echo)
    : model_(std::move(model)),
      reply_(std::move(reply)),
      streams_(streams),
      echo_(std::move(echo)),
      id_(new_id("resp_")),
      created_(std::time(nullptr)) {
  usage_.prompt_tokens = prompt_tokens;
}

Json ResponsesSink::response(const char* status) const {
  Json json;
  json["id"] = id_;
  json["object"] = "response";
  json["created_at"] = created_;
  json["status"] = status;
  json["error"] = nullptr;
  json["incomplete_details"] = nullptr;
  if (std::string_view(status) == "incomplete") {
    json["incomplete_details"] = {{"reason", "max_output_tokens"}};
  }
  json["model"] = model_->name();
  json["output"] = output_;
  json.update(echo_);
  json["usage"] = nullptr;
  if (std::string_view(status) != "in_progress") {
    json["usage"] = {{"input_tokens", usage_.prompt_tokens},
                     {"input_tokens_details", {{"cached_tokens", usage_.cached_tokens}}},
                     {"output_tokens", usage_.generated},
                     {"output_tokens_details", {{"reasoning_tokens", n_reasoning_}}},
                     {"total_tokens", usage_.prompt_tokens + usage_.generated}};
    json["timings"] = timings_json(usage_);
  }
  return json;
}

void ResponsesSink::write(const char* type, Json event) {
  Json json = {{"type", type}, {"sequence_number", n_events_++}};
  json.update(event);
  reply_->write(sse_event(json, type));
}

void ResponsesSink::begin_stream() {
  if (std::exchange(begun_, true)) return;
  reply_->begin_stream(event_stream());
  write("response.created", {{"response", response("in_progress")}});
  write("response.in_progress", {{"response", response("in_progress")}});
}

Json ResponsesSink::at_item() const {
  Json json = {{"item_id", item_["id"]}, {"output_index", n_items_ - 1}};
  if (kind_ != Item::call) json["content_index"] = 0;
  return json;
}

void ResponsesSink::open(Item kind) {
  if (kind_ == kind) return;
  close(true);
  kind_ = kind;
  item_ = Json::object();
  if (kind == Item::message) {
    item_["id"] = new_id("msg_");
    item_["type"] = "message";
    item_["status"] = "in_progress";
    item_["role"] = "assistant";
  } else {
    item_["id"] = new_id("rs_");
    item_["type"] = "reasoning";
    item_["status"] = "in_progress";
    item_["summary"] = Json::array();
  }
  item_["content"] = Json::array();
  ++n_items_;
  if (!streams_) return;
  begin_stream();
  write("response.output_item.added", {{"output_index", n_items_ - 1}, {"item", item_}});
  Json added = at_item();
  added["part"] = kind == Item::message ? text_part("") : reasoning_part("");
  write("response.content_part.added", std::move(added));
}

void ResponsesSink::open_call(const ReplyEvent& event) {
  close(true);
  kind_ = Item::call;
  item_ = Json::object();
  item_["id"] = new_id("fc_");
  item_["type"] = "function_call";
  item_["status"] = "in_progress";
  item_["call_id"] = event.id.empty() ? new_call_id(*model_) : std::string(event.id);
  item_["name"] = event.name;
  item_["arguments"] = "";
  ++n_items_;
  if (!streams_) return;
  begin_stream();
  write("response.output_item.added", {{"output_index", n_items_ - 1}, {"item", item_}});
}

void ResponsesSink::add(const char* type, std::string_view text) {
  text_ += text;
  if (!streams_) return;
  Json delta = at_item();
  delta["delta"] = text;
  if (kind_ == Item::message) delta["logprobs"] = Json::array();
  write(type, std::move(delta));
}

// complete: false for an incomplete call.
void ResponsesSink::close(bool complete) {
  if (kind_ == Item::none) return;
  item_["status"] = complete ? status_ : "incomplete";
  Json done = at_item();
  if (kind_ == Item::call) {
    item_["arguments"] = text_;
    done["arguments"] = text_;
    if (streams_ && complete) {
      done["name"] = item_["name"];
      write("response.function_call_arguments.done", std::move(done));
    }
  } else {
    Json part = kind_ == Item::message ? text_part(text_) : reasoning_part(text_);
    item_["content"].push_back(part);
    if (streams_) {
      Json whole = done;
      whole["text"] = text_;
      if (kind_ == Item::message) whole["logprobs"] = Json::array();
      write(kind_ == Item::message ? "response.output_text.done" : "response.reasoning_text.done",
            std::move(whole));
      done["part"] = std::move(part);
      write("response.content_part.done", std::move(done));
    }
  }
  if (streams_) {
    write("response.output_item.done", {{"output_index", n_items_ - 1}, {"item", item_}});
  }
  if (complete || streams_) output_.push_back(std::move(item_));
  kind_ = Item::none;
  text_.clear();
}

void ResponsesSink::token(int, const TokenEvent&) {
  ++n_untold_;
  if (streams_) begin_stream();  // with the first token, whatever it is
}

void ResponsesSink::event(int, const ReplyEvent& event) {
  const std::int64_t n_tokens = std::exchange(n_untold_, 0);
  if (event.kind == Kind::reasoning) n_reasoning_ += n_tokens;
  switch (event.kind) {
    case Kind::content:
      // Clients have received it as a call that never ended.
      if (event.of_broken_call && streams_) break;
      open(Item::message);
      add("response.output_text.delta", event.text);
      break;
    case Kind::reasoning:
      open(Item::reasoning);
      add("response.reasoning_text.delta", event.text);
      break;
    case Kind::call_begin:
      open_call(event);
      break;
    case Kind::call_arguments:
      add("response.function_call_arguments.delta", event.text);
      break;
    case Kind::call_end:
      close(event.complete);
      break;
  }
}

void ResponsesSink::end(int, const GenerateResult& result, int) {
  usage_.add(result);
  if (result.finish_reason != FinishReason::stop) status_ = "incomplete";
  close(true);
}

void ResponsesSink::all_ended() {
  if (!streams_) return send_json(*reply_, response(status_));
  begin_stream();
  const bool whole = std::string_view(status_) == "completed";
  write(whole ? "response.completed" : "response.incomplete", {{"response", response(status_)}});
  reply_->end_stream();
}

void ResponsesSink::failed(const ApiError& error) {
  if (!begun_) return reply_->send(error_response(error));
  Json failed = response("failed");
  failed["error"] = {{"code", "server_error"}, {"message", error.what()}};
  write("response.failed", {{"response", std::move(failed)}});
  reply_->end_stream();
}

}  // namespace outrider::server
