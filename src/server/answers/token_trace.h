// SPDX-License-Identifier: Apache-2.0
// The origin of a request's tokens, for clients that watch drafting: the extension field `trace` of
// streams.
//
//   "trace": {"rounds": [{"round": 3, "seconds": 0.05,
//                         "draft": {"tokens": [" a", " the", " cat"], "parents": [-1, -1, 1],
//                                   "accepted": [1, 2]},
//                         "tokens": [{"token": " the", "text": " the", "origin": "accepted",
//                                     "rank": 1}, ...]}],
//             "statistics": {"rounds", "tokens", "drafted", "accepted", "seconds",
//                            "tokens_per_second", "tau", "acceptance"}}
//
// If a round's tokens come in several chunks, each chunk has the round's number. Only the first has
// the draft and the time (since the end of the first round). `text` is the text that became certain
// with the token (TokenEvent::text), `token` the token's own.
#ifndef OUTRIDER_SERVER_ANSWERS_TOKEN_TRACE_H_
#define OUTRIDER_SERVER_ANSWERS_TOKEN_TRACE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "outrider/generate.h"
#include "server/requests/json_fields.h"
#include "server/served_model.h"

namespace outrider::server {

// All functions are called on the thread that runs the texts.
class TokenTrace {
 public:
  // Called once: observes the texts, one for each choice, from their first token on, by setting
  // their on_draft and on_token.
  static void watch(const std::shared_ptr<TokenTrace>& trace,
                    const std::shared_ptr<const ServedModel>& model,
                    std::span<GenerateRequest> requests);

  // The trace of a choice since the last call; null: nothing.
  Json take(int choice);

 private:
  using Clock = std::chrono::steady_clock;
  struct Choice {
    Json rounds = Json::array();  // not taken yet
    bool in_round = false;        // tokens of the last round are still coming
    std::int64_t n_rounds = 0;
    std::int64_t n_tokens = 0;
    std::int64_t n_drafted = 0;
    std::int64_t n_accepted = 0;
    std::int64_t n_first = 0;      // tokens of the first round
    Clock::time_point first = {};  // when its tokens came
    double seconds = 0;            // from then to the last round
  };
  Choice& of(int choice) { return choices_[static_cast<std::size_t>(choice)]; }
  void draft(Choice& choice, const DraftEvent& event);
  void token(Choice& choice, const TokenEvent& event);

  std::shared_ptr<const ServedModel> model_;
  std::vector<Choice> choices_;
};

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_ANSWERS_TOKEN_TRACE_H_
