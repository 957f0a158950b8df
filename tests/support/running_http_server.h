// SPDX-License-Identifier: Apache-2.0
// An HttpServer on a separate thread, with limits short enough for tests.
#ifndef OUTRIDER_TESTS_SUPPORT_RUNNING_HTTP_SERVER_H_
#define OUTRIDER_TESTS_SUPPORT_RUNNING_HTTP_SERVER_H_

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "server/http/http_server.h"

namespace outrider::test {

inline server::HttpLimits short_limits() {
  using std::chrono::milliseconds;
  return {.header_bytes = 2048,
          .body_bytes = 10'000,
          .connections = 64,
          .unsent_bytes = 256 * 1024,
          .header_time = milliseconds(250),
          .body_time = milliseconds(250),
          .write_time = milliseconds(250),
          .idle_time = milliseconds(400)};
}

class RunningHttpServer {
 public:
  explicit RunningHttpServer(server::HttpHandler handler,
                             const server::HttpLimits& limits = short_limits())
      : server_(limits, std::move(handler),
                [](int status, std::string_view problem) {
                  return std::to_string(status) + " " + std::string(problem);
                }),
        port_(server_.listen("127.0.0.1", 0)),
        thread_([this] { server_.run(); }) {}
  ~RunningHttpServer() {
    server_.stop();
    join();
  }
  RunningHttpServer(const RunningHttpServer&) = delete;
  RunningHttpServer& operator=(const RunningHttpServer&) = delete;

  int port() const { return port_; }
  server::HttpServer& operator*() { return server_; }
  server::HttpServer* operator->() { return &server_; }
  // Waits for run() to return.
  void join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  server::HttpServer server_;
  int port_;
  std::thread thread_;
};

// Whether the condition becomes true within ten seconds.
inline bool becomes_true(const std::function<bool()>& condition) {
  constexpr int kTries = 2000;
  for (int i = 0; i < kTries; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_RUNNING_HTTP_SERVER_H_
