// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 over TCP: connections, limits and time-outs. Independent of models.
//
//   HttpServer server(limits, [](HttpRequest request, std::shared_ptr<HttpReply> reply) {
//     reply->send({.status = 200, .body = "{}"});
//   });
//   const int port = server.listen("127.0.0.1", 0);
//   server.run();  // until drain() and the end of the last reply, or stop()
#ifndef OUTRIDER_SERVER_HTTP_HTTP_SERVER_H_
#define OUTRIDER_SERVER_HTTP_HTTP_SERVER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace outrider::server {

struct HttpLimits {
  std::size_t header_bytes = 16 * 1024;
  std::size_t body_bytes = 8 * 1024 * 1024;
  int connections = 1024;  // further ones are closed at once
  // Bytes of a reply that may wait for its client; slower clients are disconnected.
  std::size_t unsent_bytes = 4 * 1024 * 1024;
  std::chrono::milliseconds header_time{10'000};  // from a request's first byte to its last header
  std::chrono::milliseconds body_time{60'000};    // for the body
  std::chrono::milliseconds write_time{30'000};   // for each write
  std::chrono::milliseconds idle_time{75'000};    // between two requests of a connection
};

struct HttpRequest {
  std::string method;
  std::string path;   // without the query, as sent (%XX is not decoded)
  std::string query;  // after the question mark
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string peer;  // the client's address

  // The value of a header by its name in lower case; empty if there is none.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// The reply to one request: one response, or a stream of parts. Thread-safe. Calls after the end,
// and for a disconnected client, do nothing. A reply destroyed without an answer sends status 500.
// One destroyed within a stream closes the connection, so that the client notices the missing end.
// A reply may outlive its server.
class HttpReply {
 public:
  virtual ~HttpReply() = default;
  virtual void send(HttpResponse response) = 0;
  // A response in chunks; head.body is ignored.
  virtual void begin_stream(HttpResponse head) = 0;
  virtual void write(std::string part) = 0;
  virtual void end_stream() = 0;
  // Calls back once, on any thread, if the client disconnects before the reply is complete or the
  // server is destroyed; at once if that has happened.
  virtual void on_gone(std::function<void()> callback) = 0;
};

// Called on the thread of run(): it must not block.
using HttpHandler = std::function<void(HttpRequest request, std::shared_ptr<HttpReply> reply)>;
// The body of a reply to an invalid request (400, 413, 431), and to a dropped reply (500).
using HttpErrorBody = std::function<std::string(int status, std::string_view problem)>;

class HttpServer {
 public:
  HttpServer(const HttpLimits& limits, HttpHandler handler, HttpErrorBody error_body);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Returns the port; for port 0 the system chooses one. Throws Error if it cannot listen at the
  // address.
  int listen(const std::string& host, int port);
  // Serves until stop(), or until drain() and the end of the last reply.
  void run();
  // Both are thread-safe. drain() accepts nothing new and closes connections that wait for a
  // request.
  void drain();
  void stop();

  int n_connections() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_HTTP_HTTP_SERVER_H_
