// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "server/api_error.h"
#include "server/endpoints/completion_sink.h"
#include "server/endpoints/endpoints.h"
#include "server/requests/answer_form.h"
#include "server/requests/generation_fields.h"

namespace outrider::server {
namespace {

constexpr int kMaxLogProbs = 20;
constexpr int kMaxTokens = 16;  // OpenAI's default for this endpoint

// A text, or a list of token ids.
std::vector<TokenId> prompt_of(JsonFields& body, const ServedModel& model, std::string& text) {
  const Json* prompt = &body.require("prompt");
  // A list of one prompt is that prompt.
  if (prompt->is_array() && prompt->size() == 1 && !prompt->front().is_number()) {
    prompt = &prompt->front();
  }
  if (prompt->is_string()) {
    text = prompt->get<std::string>();
    return model.tokenizer().encode(text, true);
  }
  if (!prompt->is_array()) body.refuse("prompt", "a string or a list of tokens", kind_of(*prompt));
  std::vector<TokenId> ids;
  ids.reserve(prompt->size());
  for (const Json& id : *prompt) {
    if (!id.is_number_integer()) {
      body.refuse("prompt", "one prompt: a string or a list of tokens", kind_of(id));
    }
    const auto value = id.get<std::int64_t>();
    if (value < 0 || value > std::numeric_limits<TokenId>::max() ||
        !model.tokenizer().has(static_cast<TokenId>(value))) {
      body.refuse("prompt", "tokens of this model", id.dump());
    }
    ids.push_back(static_cast<TokenId>(value));
  }
  text = model.tokenizer().decode(ids);
  return ids;
}

}  // namespace

void completions(const Call& call) {
  const ServedModel& model = *call.model;
  JsonFields body(*call.body);
  body.accept({"model", "user", "cache_prompt"});
  std::string text;
  std::vector<TokenId> prompt = prompt_of(body, model, text);
  const bool says_length = body.has("max_tokens") || body.has("n_predict");
  GenerationFields fields = read_generation_fields(body, model);
  if (!says_length) fields.options.max_tokens = kMaxTokens;
  fields.options.grammar = read_answer_form(body);
  OpenAiStyle style = read_openai_style(body);
  if (const auto n = body.integer("logprobs", 0, kMaxLogProbs)) {
    style.log_probs = static_cast<int>(*n);
  }
  std::string echo;
  if (body.boolean("echo").value_or(false)) {
    if (style.streams || style.log_probs >= 0) {
      body.refuse("echo", "false with stream or logprobs", "true");
    }
    if (model.model().summary().n_encoder_layers > 0) {
      body.refuse("echo", "false where an encoder reads the prompt", "true");
    }
    echo = std::move(text);
  }
  if (const auto best = body.integer("best_of", 1, kMaxChoices);
      best && *best != fields.n_choices) {
    body.refuse("best_of", "as many as n", std::to_string(*best));
  }
  body.finish();
  fields.options.log_probs = style.log_probs;
  const auto n_prompt = static_cast<std::int64_t>(prompt.size());
  if (prompt.empty()) body.refuse("prompt", "at least one token", "none");
  auto sink = std::make_shared<CompletionSink>(call.model, call.reply, style, n_prompt,
                                               fields.n_choices, std::move(echo));
  AskedTexts texts{.requests = requests_of(model, std::move(prompt), std::move(fields.options),
                                           fields.n_choices),
                   .speculation = fields.speculation,
                   .slot = fields.slot};
  if (style.trace) TokenTrace::watch(style.trace, call.model, texts.requests);
  run_texts(call.model, std::move(texts), call.reply, std::move(sink));
}

}  // namespace outrider::server
