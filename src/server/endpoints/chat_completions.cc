#include <algorithm>
#include <memory>
#include <utility>

#include "server/api_error.h"
#include "server/conversation.h"
#include "server/endpoints/endpoints.h"
#include "server/endpoints/openai_sink.h"
#include "server/generation_fields.h"

namespace outrider::server {
namespace {

constexpr int kMostTopLogProbs = 20;  // OpenAI's

}  // namespace

void chat_completions(const Call& call) {
  const ServedModel& model = *call.model;
  JsonFields body(*call.body);
  body.accept({"model", "user", "metadata", "store", "service_tier", "safety_identifier",
               "prompt_cache_key", "cache_prompt"});
  const Conversation conversation = read_conversation(body);
  GenerationFields fields = read_generation_fields(body, model);
  OpenAiStyle style;
  style.streams = body.boolean("stream").value_or(false);
  if (auto options = body.object("stream_options")) {
    style.include_usage = options->boolean("include_usage").value_or(false);
    options->accept({"include_obfuscation"});
    options->finish();
  }
  const auto top = body.integer("top_logprobs", 0, kMostTopLogProbs);
  if (body.boolean("logprobs").value_or(false)) {
    style.log_probs = static_cast<int>(top.value_or(0));
  } else if (top.value_or(0) > 0) {
    body.refuse("top_logprobs", "logprobs to be true beside it", "none");
  }
  if (const Json* const choice = body.find("tool_choice")) {
    if (*choice != "auto" && *choice != "none") {
      body.refuse("tool_choice", "auto or none", choice->dump());
    }
  }
  if (auto format = body.object("response_format")) {
    const std::string type = format->text("type").value_or("text");
    if (type != "text") format->refuse("type", "text", "'" + type + "'");
    format->finish();
  }
  body.finish();

  GenerateOptions& options = fields.options;
  options.log_probs = style.log_probs;
  if (!options.ignore_eos) {
    const auto tokens = model.turn_end_tokens();
    options.stop_tokens.insert(options.stop_tokens.end(), tokens.begin(), tokens.end());
    const auto texts = model.turn_end_texts();
    options.stop_strings.insert(options.stop_strings.end(), texts.begin(), texts.end());
  }
  std::vector<TokenId> prompt = encode(model, conversation);
  const auto n_prompt = static_cast<std::int64_t>(prompt.size());
  auto sink =
      std::make_shared<OpenAiSink>(call.model, call.reply, style, n_prompt, fields.n_choices);
  run_texts(call.model, requests_of(model, std::move(prompt), std::move(options), fields.n_choices),
            fields.speculation, call.reply, std::move(sink));
}

}  // namespace outrider::server
