// SPDX-License-Identifier: Apache-2.0
// /tokenize, /detokenize and /apply-template, in llama-server's form.
#include <limits>
#include <string>
#include <utility>

#include "server/answers/answer_json.h"
#include "server/endpoints/endpoints.h"
#include "server/requests/conversation.h"

namespace outrider::server {

void tokenize(const Call& call) {
  const Tokenizer& tokenizer = call.model->tokenizer();
  JsonFields body(*call.body);
  body.accept({"model"});
  const auto content = body.text("content");
  if (!content) body.refuse("content", "a string", "none");
  const bool add_special = body.boolean("add_special").value_or(false);
  const bool with_pieces = body.boolean("with_pieces").value_or(false);
  body.finish();
  Json tokens = Json::array();
  for (const TokenId id : tokenizer.encode(*content, add_special)) {
    if (with_pieces) {
      tokens.push_back({{"id", id}, {"piece", token_text(tokenizer, id)}});
    } else {
      tokens.push_back(id);
    }
  }
  send_json(*call.reply, {{"tokens", std::move(tokens)}});
}

void detokenize(const Call& call) {
  const Tokenizer& tokenizer = call.model->tokenizer();
  JsonFields body(*call.body);
  body.accept({"model"});
  std::vector<TokenId> ids;
  for (const Json& id : body.list("tokens")) {
    const bool known = id.is_number_integer() && id.get<std::int64_t>() >= 0 &&
                       id.get<std::int64_t>() <= std::numeric_limits<TokenId>::max() &&
                       tokenizer.has(id.get<TokenId>());
    if (!known) body.refuse("tokens", "tokens of this model", dumped(id));
    ids.push_back(id.get<TokenId>());
  }
  body.finish();
  send_json(*call.reply, {{"content", tokenizer.decode(ids, true)}});
}

void apply_template(const Call& call) {
  JsonFields body(*call.body);
  body.accept({"model"});
  Conversation conversation = read_conversation(body);
  conversation.add_generation_prompt = body.boolean("add_generation_prompt").value_or(true);
  body.finish();
  send_json(*call.reply, {{"prompt", render(*call.model, conversation).text}});
}

}  // namespace outrider::server
