// SPDX-License-Identifier: Apache-2.0
// A small synchronous HTTP/1.1 client for tests of the server. It receives whole responses or
// streams event by event, sends bytes that are not HTTP, and closes the connection at any time.
#ifndef OUTRIDER_TESTS_SUPPORT_HTTP_CLIENT_H_
#define OUTRIDER_TESTS_SUPPORT_HTTP_CLIENT_H_

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace outrider::test {

using HttpFields = std::vector<std::pair<std::string, std::string>>;

struct HttpAnswer {
  int status = 0;
  unsigned version = 11;                       // 10 for HTTP/1.0
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  bool keep_alive = false;
};

// The text of a request, with Host and Content-Length.
std::string request_text(std::string_view method, std::string_view target, std::string_view body,
                         const HttpFields& headers = {});

// One connection to 127.0.0.1. Functions throw std::runtime_error if the expected data does not
// arrive within `patience`, or the connection ends before it. Not thread-safe.
class HttpClient {
 public:
  explicit HttpClient(int port, std::chrono::milliseconds patience = std::chrono::seconds(30));
  ~HttpClient();
  HttpClient(HttpClient&& other) noexcept;

  // Sends bytes unchanged; false if the server has closed the connection.
  bool send(std::string_view bytes);
  // The next whole response. to_head: it answers a HEAD request and has no body, whatever its
  // headers contain.
  HttpAnswer receive(bool to_head = false);
  HttpAnswer request(std::string_view method, std::string_view target, std::string_view body = {},
                     const HttpFields& headers = {});
  HttpAnswer get(std::string_view target, const HttpFields& headers = {});
  HttpAnswer post(std::string_view target, std::string_view body, const HttpFields& headers = {});

  // A stream: its head (with an empty body), then its events, each up to the empty line after it;
  // nullopt at the end. Throws if the stream is cut off.
  HttpAnswer receive_head();
  std::optional<std::string> next_event();

  // All bytes up to the end of the connection.
  std::string receive_rest();
  // Whether the connection ends within `patience` and before any byte arrives.
  bool ends(std::chrono::milliseconds patience);

  void shut_sending();  // no more will be sent
  void close();
  void reset();  // closes without a shutdown

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_HTTP_CLIENT_H_
