// SPDX-License-Identifier: Apache-2.0
// The texts of one request in the batch, and the endpoint's receiver of them.
#ifndef OUTRIDER_SERVER_TEXTS_H_
#define OUTRIDER_SERVER_TEXTS_H_

#include <memory>
#include <vector>

#include "outrider/generate.h"
#include "server/api_error.h"
#include "server/http/http_server.h"
#include "server/served_model.h"

namespace outrider::server {

// Calls come one at a time. An exception from token(), end() or all_ended() ends the request and is
// passed to failed(). failed() must not throw.
class TextSink {
 public:
  virtual ~TextSink() = default;
  virtual void token(int choice, const TokenEvent& event) = 0;
  virtual void end(int choice, GenerateResult result) = 0;
  // Called once, last: every text has ended, or the request failed.
  virtual void all_ended() = 0;
  virtual void failed(const ApiError& error) = 0;
};

// The texts of one request.
struct AskedTexts {
  std::vector<GenerateRequest> requests;
  SpeculationOptions speculation;
  int slot = -1;  // for the first text; -1: none
};

// Submits a text for each request (its own on_token is called before the sink) and returns at once.
// If the client disconnects, or one of the texts fails, the others are cancelled. Throws ApiError,
// Error or UsageError if one cannot be submitted; the sink is not called then.
void run_texts(const std::shared_ptr<const ServedModel>& model, AskedTexts texts,
               const std::shared_ptr<HttpReply>& reply, std::shared_ptr<TextSink> sink);

// One request for each choice, with consecutive seeds. Throws ApiError (400,
// context_length_exceeded) if the prompt leaves no room for a token.
std::vector<GenerateRequest> requests_of(const ServedModel& model, std::vector<TokenId> prompt,
                                         GenerateOptions options, int n_choices);

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_TEXTS_H_
