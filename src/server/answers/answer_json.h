// SPDX-License-Identifier: Apache-2.0
// JSON that responses of all endpoints share, besides the text.
#ifndef OUTRIDER_SERVER_ANSWERS_ANSWER_JSON_H_
#define OUTRIDER_SERVER_ANSWERS_ANSWER_JSON_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "outrider/generate.h"
#include "outrider/tokenizer.h"
#include "server/http/http_server.h"
#include "server/requests/json_fields.h"

namespace outrider::server {

// The work for all texts of one request.
struct Usage {
  std::int64_t prompt_tokens = 0;  // of the prompt, counted once
  std::int64_t cached_tokens = 0;  // of these, found in the KV cache for the first text added
  std::int64_t generated = 0;
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  double prompt_seconds = 0;  // of the slowest text
  double decode_seconds = 0;

  void add(const GenerateResult& result);
};
// OpenAI's `usage`. Accepted and rejected drafts are its prediction tokens.
Json usage_json(const Usage& usage);
// llama-server's `timings`.
Json timings_json(const Usage& usage);

// An entry of OpenAI's `logprobs.content`.
Json log_prob_entry(const TokenEvent& event, const Tokenizer& tokenizer);
// JSON has no infinities: impossible tokens get -9999, as in OpenAI's API.
double finite_log_prob(double log_prob);
// A token's text, or its spelling if it has none (a special token); "" if no token has this id.
std::string token_text(const Tokenizer& tokenizer, TokenId id);

// "stop" for FinishReason::stop, otherwise "length" (also for time and cancelled).
const char* finish_reason_name(FinishReason reason);

// A new id with this prefix ("chatcmpl-..."): 24 random characters.
std::string new_id(std::string_view prefix);

std::string dumped(const Json& json);
// The text with bytes that are not UTF-8 replaced, as in dumped().
std::string valid_utf8(const std::string& text);
// Replies with it.
void send_json(HttpReply& reply, const Json& json);
// The head of a response that streams events.
HttpResponse event_stream();
// An event of a stream: "data: ...\n\n"; with a name, "event: NAME\n" before it.
std::string sse_event(const Json& data, std::string_view name = {});

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_ANSWERS_ANSWER_JSON_H_
