// SPDX-License-Identifier: Apache-2.0
#include "tests/support/http_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <stdexcept>

namespace outrider::test {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using Parser = http::response_parser<http::string_body>;

std::string lower(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

HttpAnswer answer_of(const http::response<http::string_body>& message) {
  HttpAnswer answer;
  answer.status = static_cast<int>(message.result_int());
  answer.version = message.version();
  answer.keep_alive = message.keep_alive();
  for (const auto& field : message) {
    answer.headers[lower({field.name_string().data(), field.name_string().size()})] =
        std::string(field.value().data(), field.value().size());
  }
  answer.body = message.body();
  return answer;
}

}  // namespace

struct HttpClient::State {
  State(int port, std::chrono::milliseconds time) : patience(time), stream(context) {
    stream.socket().connect({asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(port)});
    stream.socket().set_option(tcp::no_delay(true));
  }

  // Starts an operation whose callback gets an error first, and waits for it.
  template <typename Begin>
  error_code run(const Begin& begin, std::chrono::milliseconds time) {
    error_code result;
    stream.expires_after(time);
    begin([&result](error_code error, std::size_t) { result = error; });
    context.restart();
    context.run();
    stream.expires_never();
    return result;
  }

  std::unique_ptr<Parser> new_parser() {
    auto made = std::make_unique<Parser>();
    made->body_limit(boost::none);
    return made;
  }

  std::chrono::milliseconds patience;
  asio::io_context context;
  beast::tcp_stream stream;
  beast::flat_buffer buffer;
  std::unique_ptr<Parser> parser;  // of the current stream
  std::size_t n_taken = 0;         // bytes of its body that were read
};

namespace {

void check(const char* what, error_code error) {
  if (error) throw std::runtime_error(std::string(what) + ": " + error.message());
}

}  // namespace

std::string request_text(std::string_view method, std::string_view target, std::string_view body,
                         const HttpFields& headers) {
  std::string text;
  text.append(method).append(" ").append(target).append(" HTTP/1.1\r\nHost: test\r\n");
  for (const auto& [name, value] : headers) text.append(name + ": " + value + "\r\n");
  if (!body.empty() || method == "POST") {
    text.append("Content-Length: " + std::to_string(body.size()) + "\r\n");
  }
  return text.append("\r\n").append(body);
}

HttpClient::HttpClient(int port, std::chrono::milliseconds patience)
    : state_(std::make_unique<State>(port, patience)) {}
HttpClient::~HttpClient() = default;
HttpClient::HttpClient(HttpClient&& other) noexcept = default;

bool HttpClient::send(std::string_view bytes) {
  State& state = *state_;
  const error_code error = state.run(
      [&](auto done) { asio::async_write(state.stream, asio::buffer(bytes), std::move(done)); },
      state.patience);
  return !error;
}

HttpAnswer HttpClient::receive(bool to_head) {
  State& state = *state_;
  const auto parser = state.new_parser();
  parser->skip(to_head);
  check("receive", state.run(
                       [&](auto done) {
                         http::async_read(state.stream, state.buffer, *parser, std::move(done));
                       },
                       state.patience));
  return answer_of(parser->get());
}

HttpAnswer HttpClient::request(std::string_view method, std::string_view target,
                               std::string_view body, const HttpFields& headers) {
  send(request_text(method, target, body, headers));
  return receive(method == "HEAD");
}

HttpAnswer HttpClient::get(std::string_view target, const HttpFields& headers) {
  return request("GET", target, {}, headers);
}

HttpAnswer HttpClient::post(std::string_view target, std::string_view body,
                            const HttpFields& headers) {
  return request("POST", target, body, headers);
}

HttpAnswer HttpClient::receive_head() {
  State& state = *state_;
  state.parser = state.new_parser();
  state.n_taken = 0;
  check("receive_head", state.run(
                            [&](auto done) {
                              http::async_read_header(state.stream, state.buffer, *state.parser,
                                                      std::move(done));
                            },
                            state.patience));
  return answer_of(state.parser->get());
}

std::optional<std::string> HttpClient::next_event() {
  constexpr std::string_view kEnd = "\n\n";
  State& state = *state_;
  for (;;) {
    const std::string& body = state.parser->get().body();
    if (const auto end = body.find(kEnd, state.n_taken); end != std::string::npos) {
      std::string event = body.substr(state.n_taken, end - state.n_taken);
      state.n_taken = end + kEnd.size();
      return event;
    }
    if (state.parser->is_done()) {
      if (state.n_taken != body.size()) throw std::runtime_error("half an event at the end");
      return std::nullopt;
    }
    check("next_event", state.run(
                            [&](auto done) {
                              http::async_read_some(state.stream, state.buffer, *state.parser,
                                                    std::move(done));
                            },
                            state.patience));
  }
}

std::string HttpClient::receive_rest() {
  State& state = *state_;
  std::string rest;
  for (;;) {
    rest.append(static_cast<const char*>(state.buffer.data().data()), state.buffer.size());
    state.buffer.clear();
    std::size_t n_read = 0;
    const error_code error = state.run(
        [&](auto done) {
          state.stream.async_read_some(
              state.buffer.prepare(64 * 1024),
              [&n_read, done = std::move(done)](error_code result, std::size_t n) {
                n_read = n;
                done(result, n);
              });
        },
        state.patience);
    state.buffer.commit(n_read);
    if (error == beast::error::timeout) throw std::runtime_error("receive_rest: no end");
    if (error) return rest;
  }
}

bool HttpClient::ends(std::chrono::milliseconds patience) {
  pollfd poll_of = {.fd = state_->stream.socket().native_handle(), .events = POLLIN, .revents = 0};
  if (::poll(&poll_of, 1, static_cast<int>(patience.count())) <= 0) return false;
  char byte = 0;
  return ::recv(poll_of.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

void HttpClient::shut_sending() {
  error_code ignored;
  state_->stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
}

void HttpClient::close() { state_->stream.close(); }

void HttpClient::reset() {
  error_code ignored;
  state_->stream.socket().set_option(asio::socket_base::linger(true, 0), ignored);
  state_->stream.close();
}

}  // namespace outrider::test
