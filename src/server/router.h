// SPDX-License-Identifier: Apache-2.0
// Routes requests by path: API keys, methods, the body's JSON, and errors as responses.
#ifndef OUTRIDER_SERVER_ROUTER_H_
#define OUTRIDER_SERVER_ROUTER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/endpoints/endpoints.h"
#include "server/http/http_server.h"
#include "server/model_shelf.h"

namespace outrider::server {

// Compares in a time that depends on the lengths alone.
bool equal_in_constant_time(std::string_view a, std::string_view b);

struct RouterOptions {
  std::vector<std::string> api_keys = {};  // empty: no key is required
  std::string cors_origin = {};            // Access-Control-Allow-Origin; empty: no such header
};

// Thread-safe.
class Router {
 public:
  // work: runs tasks that may take long on other threads. load: runs tasks that wait for a model to
  // be loaded, on yet other threads.
  using Work = std::function<void(std::function<void()>)>;
  Router(std::shared_ptr<ModelShelf> models, RouterOptions options, Work work, Work load);

  void handle(HttpRequest request, const std::shared_ptr<HttpReply>& client) const;
  // From now on /ready reports not ready, and other requests get 503.
  void drain() { drains_ = true; }

 private:
  struct Route {
    std::string_view method;
    std::string_view path;
    bool open = false;                   // requires no key
    void (*run)(const Call&) = nullptr;  // for a POST with a body; null: the router answers
  };
  static const std::vector<Route>& routes();
  struct Request;
  void read(const std::shared_ptr<Request>& waiting) const;
  static void run(const Request& waiting, const std::shared_ptr<const ServedModel>& model);
  static void fail(const Request& waiting);
  bool has_key(const HttpRequest& request) const;
  HttpResponse answer_itself(const Route& route, const HttpRequest& request) const;

  std::shared_ptr<ModelShelf> models_;
  RouterOptions options_;
  Work work_;
  Work load_;
  std::atomic<bool> drains_{false};
};

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_ROUTER_H_
