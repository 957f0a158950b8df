// SPDX-License-Identifier: Apache-2.0
#include "server/answers/token_trace.h"

#include <cstddef>
#include <utility>

#include "server/answers/answer_json.h"

namespace outrider::server {
namespace {

// null if the denominator is 0.
Json ratio(double amount, double of) { return of > 0 ? Json(amount / of) : Json(); }

}  // namespace

void TokenTrace::watch(const std::shared_ptr<TokenTrace>& trace,
                       const std::shared_ptr<const ServedModel>& model,
                       std::span<GenerateRequest> requests) {
  trace->model_ = model;
  trace->choices_.resize(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].options.on_draft = [trace, i](const DraftEvent& event) {
      trace->draft(trace->choices_[i], event);
    };
    requests[i].options.on_token = [trace, i](const TokenEvent& event) {
      trace->token(trace->choices_[i], event);
    };
  }
}

void TokenTrace::draft(Choice& choice, const DraftEvent& event) {
  const auto now = Clock::now();
  if (choice.n_rounds == 0) choice.first = now;
  if (choice.n_rounds == 1) choice.n_first = choice.n_tokens;
  choice.seconds = std::chrono::duration<double>(now - choice.first).count();
  choice.n_drafted += static_cast<std::int64_t>(event.tokens.size());
  Json round;
  round["round"] = ++choice.n_rounds;
  round["seconds"] = choice.seconds;
  if (!event.tokens.empty()) {
    Json tokens = Json::array();
    for (const TokenId id : event.tokens) tokens.push_back(token_text(model_->tokenizer(), id));
    Json accepted = Json::array();
    for (std::size_t i = 0; i < event.accepted.size(); ++i) {
      if (event.accepted[i] != 0) accepted.push_back(i);
    }
    Json& draft = round["draft"];
    draft["tokens"] = std::move(tokens);
    draft["parents"] = std::vector<int>(event.parents.begin(), event.parents.end());
    draft["accepted"] = std::move(accepted);
  }
  round["tokens"] = Json::array();
  choice.rounds.push_back(std::move(round));
  choice.in_round = true;
}

void TokenTrace::token(Choice& choice, const TokenEvent& event) {
  ++choice.n_tokens;
  if (event.origin == TokenOrigin::accepted) ++choice.n_accepted;
  if (event.ends) return;  // no part of the text
  if (!std::exchange(choice.in_round, true)) {
    choice.rounds.push_back({{"round", choice.n_rounds}, {"tokens", Json::array()}});
  }
  Json one;
  one["token"] = token_text(model_->tokenizer(), event.id);
  one["text"] = event.text;
  one["origin"] = name_of(event.origin);
  if (event.rank >= 0) one["rank"] = event.rank;
  choice.rounds.back()["tokens"].push_back(std::move(one));
}

Json TokenTrace::take(int index) {
  if (index < 0 || static_cast<std::size_t>(index) >= choices_.size()) return nullptr;
  Choice& choice = of(index);
  if (choice.n_rounds == 0) return nullptr;
  choice.in_round = false;
  const auto tokens = static_cast<double>(choice.n_tokens);
  const auto drafted = static_cast<double>(choice.n_drafted);
  // The first round's tokens came before the measured time.
  const auto timed =
      choice.n_rounds > 1 ? static_cast<double>(choice.n_tokens - choice.n_first) : 0.0;
  Json statistics;
  statistics["rounds"] = choice.n_rounds;
  statistics["tokens"] = choice.n_tokens;
  statistics["drafted"] = choice.n_drafted;
  statistics["accepted"] = choice.n_accepted;
  statistics["seconds"] = choice.seconds;
  statistics["tokens_per_second"] = ratio(timed, choice.seconds);
  statistics["tau"] = ratio(tokens, static_cast<double>(choice.n_rounds));
  statistics["acceptance"] = ratio(static_cast<double>(choice.n_accepted), drafted);
  Json trace;
  trace["rounds"] = std::exchange(choice.rounds, Json::array());
  trace["statistics"] = std::move(statistics);
  return trace;
}

}  // namespace outrider::server
