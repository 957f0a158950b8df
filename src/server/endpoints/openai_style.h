// SPDX-License-Identifier: Apache-2.0
// Shared by OpenAI's chat completions and completions: options of the answer, and the frame around
// its choices.
#ifndef OUTRIDER_SERVER_ENDPOINTS_OPENAI_STYLE_H_
#define OUTRIDER_SERVER_ENDPOINTS_OPENAI_STYLE_H_

#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include "server/answers/answer_json.h"
#include "server/answers/token_trace.h"
#include "server/api_error.h"
#include "server/http/http_server.h"
#include "server/requests/json_fields.h"

namespace outrider::server {

struct OpenAiStyle {
  bool streams = false;
  bool include_usage = false;                   // stream_options.include_usage
  int log_probs = -1;                           // GenerateOptions::log_probs
  std::shared_ptr<TokenTrace> trace = nullptr;  // if requested: `trace`
};

// Reads `stream`, `stream_options` and `trace`. Throws ApiError (400).
OpenAiStyle read_openai_style(JsonFields& body);

// Writes the frame: id, object, time and model around choices. Not thread-safe.
class OpenAiWriter {
 public:
  OpenAiWriter(std::shared_ptr<HttpReply> reply, std::string model, const char* id_prefix,
               const char* object, const char* chunk_object);

  // From now on, chunks include the trace of their choices; null: none.
  void show(std::shared_ptr<TokenTrace> trace) { trace_ = std::move(trace); }
  // The whole answer.
  void send(Json choices, const Usage& usage);
  // A chunk of a stream; the first one begins it.
  void write_choice(Json choice, bool with_null_usage);
  // usage: sent as a separate chunk; null: none.
  void end_stream(const Usage* usage);
  void fail(const ApiError& error);

 private:
  Json head(const char* object) const;
  void begin_stream();

  std::shared_ptr<HttpReply> reply_;
  std::string model_;
  std::string id_;
  const char* object_;
  const char* chunk_object_;
  std::time_t created_;
  std::shared_ptr<TokenTrace> trace_;
  bool begun_ = false;
};

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_ENDPOINTS_OPENAI_STYLE_H_
