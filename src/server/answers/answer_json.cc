// SPDX-License-Identifier: Apache-2.0
#include "server/answers/answer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace outrider::server {
namespace {

double per(double amount, double of) { return of > 0 ? amount / of : 0; }

Json bytes_json(const std::string& text) {
  Json bytes = Json::array();
  for (const char byte : text) bytes.push_back(static_cast<unsigned char>(byte));
  return bytes;
}

Json one_log_prob(TokenId id, double log_prob, const Tokenizer& tokenizer) {
  const std::string text = token_text(tokenizer, id);
  Json entry;
  entry["token"] = text;
  entry["logprob"] = finite_log_prob(log_prob);
  entry["bytes"] = bytes_json(text);
  return entry;
}

}  // namespace

void Usage::add(const GenerateResult& result) {
  const GenerateStatistics& statistics = result.statistics;
  if (generated == 0) cached_tokens = statistics.reused;
  generated += statistics.emitted;
  drafted += statistics.drafted;
  accepted += statistics.accepted;
  prompt_seconds = std::max(prompt_seconds, statistics.prefill_seconds);
  decode_seconds = std::max(decode_seconds, statistics.decode_seconds);
}

Json usage_json(const Usage& usage) {
  Json json;
  json["prompt_tokens"] = usage.prompt_tokens;
  json["completion_tokens"] = usage.generated;
  json["total_tokens"] = usage.prompt_tokens + usage.generated;
  json["prompt_tokens_details"] = {{"cached_tokens", usage.cached_tokens}};
  json["completion_tokens_details"] = {
      {"accepted_prediction_tokens", usage.accepted},
      {"rejected_prediction_tokens", usage.drafted - usage.accepted}};
  return json;
}

Json timings_json(const Usage& usage) {
  constexpr double kMilliseconds = 1000;
  const auto n_prompt = static_cast<double>(usage.prompt_tokens - usage.cached_tokens);
  const auto n_generated = static_cast<double>(usage.generated);
  Json json;
  json["cache_n"] = usage.cached_tokens;
  json["prompt_n"] = usage.prompt_tokens - usage.cached_tokens;
  json["prompt_ms"] = usage.prompt_seconds * kMilliseconds;
  json["prompt_per_token_ms"] = per(usage.prompt_seconds * kMilliseconds, n_prompt);
  json["prompt_per_second"] = per(n_prompt, usage.prompt_seconds);
  json["predicted_n"] = usage.generated;
  json["predicted_ms"] = usage.decode_seconds * kMilliseconds;
  json["predicted_per_token_ms"] = per(usage.decode_seconds * kMilliseconds, n_generated);
  json["predicted_per_second"] = per(n_generated, usage.decode_seconds);
  json["draft_n"] = usage.drafted;
  json["draft_n_accepted"] = usage.accepted;
  return json;
}

Json log_prob_entry(const TokenEvent& event, const Tokenizer& tokenizer) {
  Json entry = one_log_prob(event.id, event.log_prob, tokenizer);
  entry["top_logprobs"] = Json::array();
  for (const TokenLogProb& one : event.top) {
    entry["top_logprobs"].push_back(one_log_prob(one.id, one.log_prob, tokenizer));
  }
  return entry;
}

double finite_log_prob(double log_prob) {
  constexpr double kNever = -9999;
  return std::isfinite(log_prob) ? log_prob : kNever;
}

std::string token_text(const Tokenizer& tokenizer, TokenId id) {
  if (!tokenizer.has(id)) return "";
  std::string text = tokenizer.bytes(id);
  if (text.empty()) text = tokenizer.piece(id);
  return text;
}

const char* finish_reason_name(FinishReason reason) {
  return reason == FinishReason::stop ? "stop" : "length";
}

std::string new_id(std::string_view prefix) {
  constexpr std::string_view kLetters =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  constexpr int kLength = 24;
  thread_local std::mt19937_64 random{std::random_device{}()};
  std::uniform_int_distribution<std::size_t> letter(0, kLetters.size() - 1);
  std::string id(prefix);
  for (int i = 0; i < kLength; ++i) id += kLetters[letter(random)];
  return id;
}

std::string valid_utf8(const std::string& text) {
  return Json::parse(dumped(Json(text))).get<std::string>();
}

void send_json(HttpReply& reply, const Json& json) {
  reply.send(
      {.status = 200, .content_type = "application/json", .body = dumped(json), .headers = {}});
}

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HttpResponse event_stream() {
  HttpResponse response;
  response.content_type = "text/event-stream";
  response.headers.emplace_back("X-Accel-Buffering", "no");  // tells proxies not to buffer events
  return response;
}

std::string sse_event(const Json& data, std::string_view name) {
  std::string event;
  if (!name.empty()) event = fmt::format("event: {}\n", name);
  return event.append("data: ").append(dumped(data)).append("\n\n");
}

}  // namespace outrider::server
