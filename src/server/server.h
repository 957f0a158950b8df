// SPDX-License-Identifier: Apache-2.0
// The HTTP server with its router.
#ifndef OUTRIDER_SERVER_SERVER_H_
#define OUTRIDER_SERVER_SERVER_H_

#include <memory>
#include <string>
#include <utility>

#include "server/http/http_server.h"
#include "server/model_shelf.h"
#include "server/router.h"
#include "server/served_model.h"

namespace outrider::server {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;  // 0: the system chooses
  HttpLimits limits = {};
  RouterOptions router = {};
};

class Server {
 public:
  // Starts to listen. Throws Error if it cannot listen at the address.
  Server(std::shared_ptr<ModelShelf> models, const ServerOptions& options);
  // With one model.
  Server(std::shared_ptr<const ServedModel> model, const ServerOptions& options)
      : Server(std::make_shared<ModelShelf>(std::move(model)), options) {}
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  // Serves until drain() and the last reply, or stop(). Any thread may call drain() and stop().
  void run();
  void drain();
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_SERVER_H_
