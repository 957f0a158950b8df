// SPDX-License-Identifier: Apache-2.0
#include "server/server.h"

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "server/api_error.h"

namespace outrider::server {
namespace {

// Threads that read bodies, render templates and encode prompts; the processors are left to the
// passes.
constexpr int kWorkers = 2;

}  // namespace

struct Server::State {
  State(std::shared_ptr<ModelShelf> models, const ServerOptions& options)
      : idle{models},
        workers(kWorkers),
        loader(1),
        router(
            std::move(models), options.router,
            [this](std::function<void()> work) { boost::asio::post(workers, std::move(work)); },
            [this](std::function<void()> work) { boost::asio::post(loader, std::move(work)); }),
        http(
            options.limits,
            [this](HttpRequest request, const std::shared_ptr<HttpReply>& reply) {
              router.handle(std::move(request), reply);
            },
            [](int status, std::string_view problem) {
              return error_body(ApiError(status, std::string(problem)));
            }),
        port(http.listen(options.host, options.port)) {}
  ~State() {
    workers.join();
    loader.join();
  }

  // Replies and models are freed by this thread, not by the loop's. With http, whose end cancels
  // what runs, nothing of a request is left.
  struct Idle {
    std::shared_ptr<ModelShelf> models;
    ~Idle() { models->wait_until_idle(); }
  };
  Idle idle;
  boost::asio::thread_pool workers;
  boost::asio::thread_pool loader;  // loads models, one at a time
  Router router;
  HttpServer http;
  int port;
};

Server::Server(std::shared_ptr<ModelShelf> models, const ServerOptions& options)
    : state_(std::make_unique<State>(std::move(models), options)) {}

Server::~Server() = default;

int Server::port() const { return state_->port; }
void Server::run() { state_->http.run(); }

void Server::drain() {
  state_->router.drain();
  state_->http.drain();
}

void Server::stop() { state_->http.stop(); }

}  // namespace outrider::server
