// HTTP/1.1 over TCP: connections, limits and time-outs. Knows nothing of models.
//
//   HttpServer server(limits, [](HttpRequest request, std::shared_ptr<HttpReply> reply) {
//     reply->send({.status = 200, .body = "{}"});
//   });
//   const int port = server.listen("127.0.0.1", 0);
//   server.run();  // until drain() has let the last reply out, or stop()
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
  int connections = 1024;  // one more is closed at once
  // Bytes of a reply that wait for its client; one that reads more slowly is cut off.
  std::size_t unsent_bytes = 4 * 1024 * 1024;
  std::chrono::milliseconds header_time{10'000};  // from a request's first byte to its last header
  std::chrono::milliseconds body_time{60'000};    // for the body
  std::chrono::milliseconds write_time{30'000};   // for each write
  std::chrono::milliseconds idle_time{75'000};    // between two requests of a connection
};

struct HttpRequest {
  std::string method;
  std::string path;   // without the query, as it was sent (no decoding of %XX)
  std::string query;  // behind the question mark
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string peer;  // the client's address

  // The header's value by a name in small letters; empty where there is none.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// What is answered to one request: one response, or a stream of parts. Thread-safe. Calls after the
// end, and for a client that has gone away, do nothing. One that is dropped without an answer is
// answered with 500; one that is dropped in the middle of a stream ends the connection, so that the
// client sees that something is missing. A reply may outlive its server.
class HttpReply {
 public:
  virtual ~HttpReply() = default;
  virtual void send(HttpResponse response) = 0;
  // A response in chunks; head.body is not read.
  virtual void begin_stream(HttpResponse head) = 0;
  virtual void write(std::string part) = 0;
  virtual void end_stream() = 0;
  // Calls back once, on any thread, when the client goes away before the reply is complete, or the
  // server is destroyed; at once if it has.
  virtual void on_gone(std::function<void()> callback) = 0;
};

// Called on the thread of run(): it must not wait.
using HttpHandler = std::function<void(HttpRequest request, std::shared_ptr<HttpReply> reply)>;
// The body of a reply to what is no request (400, 413, 431), and to a dropped reply (500).
using HttpErrorBody = std::function<std::string(int status, std::string_view problem)>;

class HttpServer {
 public:
  HttpServer(const HttpLimits& limits, HttpHandler handler, HttpErrorBody error_body);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Returns the port, which the system chooses for 0. Throws Error for an address that cannot be
  // listened at.
  int listen(const std::string& host, int port);
  // Serves until stop(), or until drain() and the last reply's end.
  void run();
  // Thread-safe, both. drain() accepts nothing new and closes connections that wait for a request.
  void drain();
  void stop();

  int n_connections() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_HTTP_HTTP_SERVER_H_
