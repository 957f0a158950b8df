// From a path to what answers it: keys, methods, the body's JSON, and errors as responses.
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
#include "server/served_model.h"

namespace outrider::server {

// Compares in a time that depends on the lengths alone.
bool equal_in_constant_time(std::string_view a, std::string_view b);

struct RouterOptions {
  std::vector<std::string> api_keys = {};  // none: everybody may ask
  std::string cors_origin = {};            // Access-Control-Allow-Origin; empty: no such header
};

// Thread-safe.
class Router {
 public:
  // work runs what may take longer than a look at a table, on other threads.
  using Work = std::function<void(std::function<void()>)>;
  Router(std::shared_ptr<const ServedModel> model, RouterOptions options, Work work);

  void handle(HttpRequest request, const std::shared_ptr<HttpReply>& client) const;
  // From now on /ready says no, and other requests get 503.
  void drain() { drains_ = true; }

 private:
  struct Route {
    std::string_view method;
    std::string_view path;
    bool open = false;                   // answers without a key
    void (*run)(const Call&) = nullptr;  // of a POST, with a body; null: answered by the router
  };
  static const std::vector<Route>& routes();
  bool has_key(const HttpRequest& request) const;
  HttpResponse answer_itself(const Route& route) const;

  std::shared_ptr<const ServedModel> model_;
  RouterOptions options_;
  Work work_;
  std::atomic<bool> drains_{false};
};

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_ROUTER_H_
