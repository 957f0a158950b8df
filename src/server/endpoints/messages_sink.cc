// SPDX-License-Identifier: Apache-2.0
#include "server/endpoints/messages_sink.h"

#include <algorithm>
#include <utility>

#include "server/api_error.h"

namespace outrider::server {
namespace {

using Kind = ReplyEvent::Kind;

}  // namespace

MessagesSink::MessagesSink(std::shared_ptr<const ServedModel> model,
                           std::shared_ptr<HttpReply> reply, bool streams,
                           std::int64_t prompt_tokens, std::vector<std::string> stop_sequences)
    : model_(std::move(model)),
      reply_(std::move(reply)),
      streams_(streams),
      stop_sequences_(std::move(stop_sequences)),
      id_(new_id("msg_")) {
  usage_.prompt_tokens = prompt_tokens;
}

Json MessagesSink::usage() const {
  Json json;
  json["input_tokens"] = usage_.prompt_tokens - usage_.cached_tokens;
  json["cache_creation_input_tokens"] = 0;
  json["cache_read_input_tokens"] = usage_.cached_tokens;
  json["output_tokens"] = usage_.generated;
  return json;
}

Json MessagesSink::head() const {
  Json json;
  json["id"] = id_;
  json["type"] = "message";
  json["role"] = "assistant";
  json["model"] = model_->name();
  json["content"] = content_;
  json["stop_reason"] = stop_reason_ == nullptr ? Json() : Json(stop_reason_);
  json["stop_sequence"] = stop_sequence_;
  json["usage"] = usage();
  return json;
}

void MessagesSink::write(const char* type, Json event) {
  Json json = {{"type", type}};
  json.update(event);
  reply_->write(sse_event(json, type));
}

void MessagesSink::begin_stream() {
  if (std::exchange(begun_, true)) return;
  reply_->begin_stream(event_stream());
  write("message_start", {{"message", head()}});
}

void MessagesSink::open(Block kind, Json head) {
  if (block_ == kind && kind != Block::tool_use) return;
  close();
  block_ = kind;
  if (streams_) {
    begin_stream();
    write("content_block_start", {{"index", n_blocks_}, {"content_block", std::move(head)}});
    ++n_blocks_;
  } else {
    content_.push_back(std::move(head));
  }
}

void MessagesSink::close() {
  if (std::exchange(block_, Block::none) == Block::none || !streams_) return;
  write("content_block_stop", {{"index", n_blocks_ - 1}});
}

void MessagesSink::add(const char* delta_type, const char* field, std::string_view text) {
  if (streams_) {
    write("content_block_delta",
          {{"index", n_blocks_ - 1}, {"delta", {{"type", delta_type}, {field, text}}}});
  } else {
    content_.back()[field].get_ref<std::string&>() += text;
  }
}

void MessagesSink::token(int, const TokenEvent&) {
  if (streams_) begin_stream();  // with the first token, whatever it is
}

void MessagesSink::event(int, const ReplyEvent& event) {
  switch (event.kind) {
    case Kind::content:
      // Clients have received it as a call that never ended.
      if (event.of_broken_call && streams_) break;
      open(Block::text, {{"type", "text"}, {"text", ""}});
      add("text_delta", "text", event.text);
      break;
    case Kind::reasoning:
      open(Block::thinking, {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}});
      add("thinking_delta", "thinking", event.text);
      break;
    case Kind::call_begin: {
      Json head = {{"type", "tool_use"}};
      head["id"] = event.id.empty() ? new_id("toolu_") : std::string(event.id);
      head["name"] = event.name;
      head["input"] = Json::object();
      open(Block::tool_use, std::move(head));
      input_.clear();
      break;
    }
    case Kind::call_arguments:
      if (streams_) {
        add("input_json_delta", "partial_json", event.text);
      } else {
        input_ += event.text;
      }
      break;
    case Kind::call_end:
      if (!streams_ && event.complete) content_.back()["input"] = parse_json(valid_utf8(input_));
      if (!streams_ && !event.complete) content_.erase(content_.size() - 1);
      close();
      break;
  }
}

void MessagesSink::end(int, const GenerateResult& result, int n_calls) {
  usage_.add(result);
  if (result.finish_reason != FinishReason::stop) {
    stop_reason_ = "max_tokens";
  } else if (n_calls > 0) {
    stop_reason_ = "tool_use";
  } else if (std::find(stop_sequences_.begin(), stop_sequences_.end(), result.stop_string) !=
             stop_sequences_.end()) {
    stop_reason_ = "stop_sequence";
    stop_sequence_ = result.stop_string;
  } else {
    stop_reason_ = "end_turn";
  }
}

void MessagesSink::all_ended() {
  if (!streams_) return send_json(*reply_, head());
  begin_stream();
  close();
  Json delta;
  delta["stop_reason"] = stop_reason_;
  delta["stop_sequence"] = stop_sequence_;
  write("message_delta", {{"delta", std::move(delta)}, {"usage", usage()}});
  write("message_stop", Json::object());
  reply_->end_stream();
}

void MessagesSink::failed(const ApiError& error) {
  if (!begun_) return reply_->send(error_response(error, ErrorForm::anthropic));
  reply_->write("event: error\ndata: " + error_body(error, ErrorForm::anthropic) + "\n\n");
  reply_->end_stream();
}

}  // namespace outrider::server
