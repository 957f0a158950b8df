// SPDX-License-Identifier: Apache-2.0
// The endpoints, one function for each path. Each reads the body, and replies at once or when its
// texts have ended. Throws ApiError, Error or UsageError for requests that cannot be served.
#ifndef OUTRIDER_SERVER_ENDPOINTS_ENDPOINTS_H_
#define OUTRIDER_SERVER_ENDPOINTS_ENDPOINTS_H_

#include <memory>

#include "server/http/http_server.h"
#include "server/requests/json_fields.h"
#include "server/served_model.h"

namespace outrider::server {

// A request whose body has been parsed.
struct Call {
  std::shared_ptr<const ServedModel> model;
  const HttpRequest* request = nullptr;
  const Json* body = nullptr;
  std::shared_ptr<HttpReply> reply;
};

void chat_completions(const Call& call);  // POST /v1/chat/completions
void completions(const Call& call);       // POST /v1/completions
void responses(const Call& call);         // POST /v1/responses
void messages(const Call& call);          // POST /v1/messages
void count_tokens(const Call& call);      // POST /v1/messages/count_tokens
void embeddings(const Call& call);        // POST /v1/embeddings
void tokenize(const Call& call);          // POST /tokenize
void detokenize(const Call& call);        // POST /detokenize
void apply_template(const Call& call);    // POST /apply-template
void slots(const Call& call);             // POST /slots/N?action=save, restore or erase

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_ENDPOINTS_ENDPOINTS_H_
