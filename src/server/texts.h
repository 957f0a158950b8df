// The texts of one request on their way through the batch, and what an endpoint makes of them.
#ifndef OUTRIDER_SERVER_TEXTS_H_
#define OUTRIDER_SERVER_TEXTS_H_

#include <memory>
#include <vector>

#include "outrider/generate.h"
#include "server/api_error.h"
#include "server/http/http_server.h"
#include "server/served_model.h"

namespace outrider::server {

// Called one at a time. What token(), end() and all_ended() throw ends the request: failed() is
// told of it. failed() throws nothing.
class TextSink {
 public:
  virtual ~TextSink() = default;
  virtual void token(int choice, const TokenEvent& event) = 0;
  virtual void end(int choice, GenerateResult result) = 0;
  // Once, last: every text has ended, or the request failed.
  virtual void all_ended() = 0;
  virtual void failed(const ApiError& error) = 0;
};

// The texts of one request.
struct AskedTexts {
  std::vector<GenerateRequest> requests;
  SpeculationOptions speculation;
  int slot = -1;  // of the first text; -1: none
};

// Submits a text for each request (calling its own on_token before the sink) and returns at once.
// When the client goes away, and when one of the texts fails, the others are cancelled. Throws
// ApiError, Error or UsageError where one cannot be submitted: nothing of the sink is called then.
void run_texts(const std::shared_ptr<const ServedModel>& model, AskedTexts texts,
               const std::shared_ptr<HttpReply>& reply, std::shared_ptr<TextSink> sink);

// One request for each choice, with seeds that follow each other. Throws ApiError (400,
// context_length_exceeded) where the prompt leaves no room for a token.
std::vector<GenerateRequest> requests_of(const ServedModel& model, std::vector<TokenId> prompt,
                                         GenerateOptions options, int n_choices);

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_TEXTS_H_
