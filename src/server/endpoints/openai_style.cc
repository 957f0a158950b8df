// SPDX-License-Identifier: Apache-2.0
#include "server/endpoints/openai_style.h"

#include <utility>

namespace outrider::server {

OpenAiStyle read_openai_style(JsonFields& body) {
  OpenAiStyle style;
  style.streams = body.boolean("stream").value_or(false);
  if (auto options = body.object("stream_options")) {
    style.include_usage = options->boolean("include_usage").value_or(false);
    options->accept({"include_obfuscation"});
    options->finish();
  }
  if (body.boolean("trace").value_or(false)) {
    if (!style.streams) body.refuse("trace", "stream to be true beside it", "false");
    style.trace = std::make_shared<TokenTrace>();
  }
  return style;
}

OpenAiWriter::OpenAiWriter(std::shared_ptr<HttpReply> reply, std::string model,
                           const char* id_prefix, const char* object, const char* chunk_object)
    : reply_(std::move(reply)),
      model_(std::move(model)),
      id_(new_id(id_prefix)),
      object_(object),
      chunk_object_(chunk_object),
      created_(std::time(nullptr)) {}

Json OpenAiWriter::head(const char* object) const {
  Json json;
  json["id"] = id_;
  json["object"] = object;
  json["created"] = created_;
  json["model"] = model_;
  return json;
}

void OpenAiWriter::send(Json choices, const Usage& usage) {
  Json json = head(object_);
  json["choices"] = std::move(choices);
  json["usage"] = usage_json(usage);
  json["timings"] = timings_json(usage);
  send_json(*reply_, json);
}

void OpenAiWriter::begin_stream() {
  if (!std::exchange(begun_, true)) reply_->begin_stream(event_stream());
}

void OpenAiWriter::write_choice(Json choice, bool with_null_usage) {
  begin_stream();
  if (trace_) {
    if (Json trace = trace_->take(choice["index"].get<int>()); !trace.is_null()) {
      choice["trace"] = std::move(trace);
    }
  }
  Json chunk = head(chunk_object_);
  chunk["choices"] = Json::array({std::move(choice)});
  if (with_null_usage) chunk["usage"] = nullptr;
  reply_->write(sse_event(chunk));
}

void OpenAiWriter::end_stream(const Usage* usage) {
  begin_stream();
  if (usage != nullptr) {
    Json chunk = head(chunk_object_);
    chunk["choices"] = Json::array();
    chunk["usage"] = usage_json(*usage);
    chunk["timings"] = timings_json(*usage);
    reply_->write(sse_event(chunk));
  }
  reply_->write("data: [DONE]\n\n");
  reply_->end_stream();
}

void OpenAiWriter::fail(const ApiError& error) {
  if (!begun_) return reply_->send(error_response(error));
  reply_->write("data: " + error_body(error) + "\n\n");
  reply_->end_stream();
}

}  // namespace outrider::server
