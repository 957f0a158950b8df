// SPDX-License-Identifier: Apache-2.0
#include "server/http/http_server.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "outrider/error.h"
#include "server/http/origin_form.h"
#include "server/http/queued_reply.h"
#include "server/http/write_reply.h"

namespace outrider::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr const char* kJson = "application/json";

// Lower case; header names are ASCII.
std::string lower(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

// Whether the client has closed the connection, whatever data is unread.
bool has_left(tcp::socket& socket) {
  pollfd poll_of = {.fd = socket.native_handle(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&poll_of, 1, 0) != 0;
}

// Access to the context for threads that may outlive it.
struct Gate {
  std::mutex mutex;
  asio::io_context* context;  // null: the server is being destroyed
};

}  // namespace

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

struct HttpServer::State {
  State(const HttpLimits& http_limits, HttpHandler http_handler, HttpErrorBody body)
      : limits(http_limits),
        handler(std::move(http_handler)),
        error_body(std::make_shared<const HttpErrorBody>(std::move(body))),
        acceptor(context),
        retry(context) {
    gate->context = &context;
  }

  asio::awaitable<void> accept();
  asio::awaitable<void> serve(std::shared_ptr<beast::tcp_stream> connection);
  asio::awaitable<bool> answer(std::shared_ptr<beast::tcp_stream> connection, HttpRequest request,
                               bool keep_alive, unsigned version);
  struct Watch {  // observes a reply's client
    explicit Watch(asio::io_context& context) : pause(context) {}
    asio::steady_timer pause;
    bool over = false;
  };
  static asio::awaitable<void> watch(std::shared_ptr<beast::tcp_stream> connection,
                                     std::shared_ptr<QueuedReply> reply,
                                     std::shared_ptr<Watch> watch);
  asio::awaitable<void> refuse(beast::tcp_stream& stream, const HttpResponse& response);

  HttpLimits limits;
  HttpHandler handler;
  std::shared_ptr<const HttpErrorBody> error_body;
  const std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  asio::io_context context{1};
  tcp::acceptor acceptor;
  asio::steady_timer retry;
  std::atomic<int> n_connections{0};
  std::set<beast::tcp_stream*> idle;  // those that wait for a request
  bool drains = false;
};

asio::awaitable<void> HttpServer::State::accept() {
  // Before the next attempt, if the system has no descriptors left.
  constexpr std::chrono::milliseconds kPause(100);
  while (acceptor.is_open()) {
    error_code error;
    tcp::socket socket = co_await acceptor.async_accept(to_error(error));
    if (error) {
      if (!acceptor.is_open()) co_return;
      retry.expires_after(kPause);
      co_await retry.async_wait(to_error(error));
      continue;
    }
    if (n_connections >= limits.connections) continue;  // closes it
    ++n_connections;
    socket.set_option(tcp::no_delay(true), error);
    asio::co_spawn(
        context,
        [this, stream = std::make_shared<beast::tcp_stream>(
                   std::move(socket))]() -> asio::awaitable<void> {
          try {
            co_await serve(stream);
          } catch (const std::exception&) {  // affects this connection only: no memory for a buffer
          }
          idle.erase(stream.get());
          error_code ignored;
          stream->socket().shutdown(tcp::socket::shutdown_both, ignored);
          --n_connections;
          // After the last one, run() returns.
          if (drains && n_connections == 0) context.stop();
        },
        asio::detached);
  }
}

asio::awaitable<void> HttpServer::State::serve(std::shared_ptr<beast::tcp_stream> connection) {
  beast::tcp_stream& stream = *connection;
  error_code error;
  const auto peer = stream.socket().remote_endpoint(error);
  const std::string address = error ? std::string() : peer.address().to_string();
  beast::flat_buffer buffer(limits.header_bytes + limits.body_bytes);
  while (!drains) {
    if (buffer.size() == 0) {
      // Only the first byte may take long.
      idle.insert(&stream);
      stream.expires_after(limits.idle_time);
      const std::size_t n_read =
          co_await stream.async_read_some(buffer.prepare(1), to_error(error));
      idle.erase(&stream);
      if (error || drains) co_return;
      buffer.commit(n_read);
    }
    if (const char first = *static_cast<const char*>(buffer.data().data());
        first == '\r' || first == '\n') {  // old clients send an empty line after a body
      buffer.consume(1);
      continue;
    }
    http::request_parser<http::string_body> parser;
    parser.header_limit(static_cast<std::uint32_t>(limits.header_bytes));
    parser.body_limit(limits.body_bytes);
    stream.expires_after(limits.header_time);
    co_await http::async_read_header(stream, buffer, parser, to_error(error));
    if (!error) {
      stream.expires_after(limits.body_time);
      if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
        http::response<http::empty_body> go_on(http::status::continue_, parser.get().version());
        co_await http::async_write(stream, go_on, to_error(error));
        if (error) co_return;
      }
      co_await http::async_read(stream, buffer, parser, to_error(error));
    }
    if (error == http::error::end_of_stream) co_return;
    if (error == beast::error::timeout) {
      // The time-out has closed the socket: no reply can be sent.
      co_return;
    }
    if (error == http::error::partial_message ||
        (error && (error.category() == asio::error::get_system_category() ||
                   error.category() == asio::error::get_misc_category()))) {
      co_return;
    }
    HttpResponse refusal{.status = 200, .content_type = kJson};
    std::string problem;
    if (error == http::error::header_limit) {
      refusal.status = 431;
      problem = fmt::format("headers: expected at most {} bytes", limits.header_bytes);
    } else if (error == http::error::body_limit || error == http::error::buffer_overflow) {
      refusal.status = 413;
      problem = fmt::format("body: expected at most {} bytes", limits.body_bytes);
    } else if (error) {
      refusal.status = 400;
      problem = fmt::format("request: expected HTTP/1.1, got {}", error.message());
    } else if (!parser.chunked() && parser.get().count(http::field::transfer_encoding) > 0) {
      // The end of such a body is unknown: the rest would be read as the next request.
      refusal.status = 400;
      problem = "transfer-encoding: expected chunked";
    } else if (parser.get().version() >= 11 && parser.get().count(http::field::host) != 1) {
      refusal.status = 400;  // RFC 9112, 3.2
      problem =
          fmt::format("host: expected one header, got {}", parser.get().count(http::field::host));
    }
    if (!problem.empty()) {
      refusal.body = (*error_body)(refusal.status, problem);
      co_await refuse(stream, refusal);
      co_return;
    }
    http::request<http::string_body> message = parser.release();
    HttpRequest request;
    request.method = std::string(message.method_string());
    const std::string target = origin_form({message.target().data(), message.target().size()});
    const std::size_t mark = std::min(target.find('?'), target.size());
    request.path = target.substr(0, mark);
    if (mark < target.size()) request.query = target.substr(mark + 1);
    for (const auto& field : message) {
      request.headers.emplace_back(lower({field.name_string().data(), field.name_string().size()}),
                                   std::string(field.value().data(), field.value().size()));
    }
    request.body = std::move(message.body());
    request.peer = address;
    const bool goes_on =
        co_await answer(connection, std::move(request), message.keep_alive(), message.version());
    if (!goes_on) co_return;
  }
}

// Detects that the client leaves while its reply is made.
asio::awaitable<void> HttpServer::State::watch(std::shared_ptr<beast::tcp_stream> connection,
                                               std::shared_ptr<QueuedReply> reply,
                                               std::shared_ptr<Watch> watch) {
  constexpr std::chrono::milliseconds kPause(100);
  error_code error;
  tcp::socket& socket = connection->socket();
  co_await socket.async_wait(tcp::socket::wait_read, to_error(error));
  // Data that it sends meanwhile is its next request, which stays unread: from then on the socket
  // is always readable.
  while (!error && !watch->over && socket.is_open()) {
    if (has_left(socket)) co_return reply->leave();
    watch->pause.expires_after(kPause);
    co_await watch->pause.async_wait(to_error(error));
  }
}

// Returns false if the connection ends.
asio::awaitable<bool> HttpServer::State::answer(std::shared_ptr<beast::tcp_stream> connection,
                                                HttpRequest request, bool keep_alive,
                                                unsigned version) {
  beast::tcp_stream& stream = *connection;
  ReplyForm form{
      .version = version, .keep_alive = keep_alive, .without_body = request.method == "HEAD"};
  // Cancelled when there is data to send. Replies may outlive the server, timers cannot.
  const auto arrived =
      std::make_shared<asio::steady_timer>(context, asio::steady_timer::time_point::max());
  const auto wake = [entry = gate, weak = std::weak_ptr(arrived),
                     its_stream = std::weak_ptr(connection)](bool cut_off) {
    const std::lock_guard lock(entry->mutex);
    if (entry->context == nullptr) return;
    asio::post(*entry->context, [weak, its_stream, cut_off] {
      const auto held = weak.lock();
      if (held == nullptr) return;
      held->cancel();
      if (const auto cut = its_stream.lock(); cut != nullptr && cut_off) cut->cancel();
    });
  };
  const auto reply = std::make_shared<QueuedReply>(limits.unsent_bytes, wake);
  const auto client = std::make_shared<Watch>(context);
  // However this ends, the reply is not needed any more.
  const std::unique_ptr<QueuedReply, void (*)(QueuedReply*)> leave(
      reply.get(), [](QueuedReply* r) { r->leave(); });
  stream.expires_never();
  asio::co_spawn(context, watch(connection, reply, client), asio::detached);
  handler(std::move(request), make_reply_handle(reply, error_body));

  bool ok = true;
  const StreamWriter writer(stream, form);
  for (bool complete = false; ok && !complete;) {
    reply->awake();  // comes first: from now on new data wakes the wait below
    std::optional<QueuedReply::Piece> piece = reply->take();
    if (!piece) {
      if (reply->gone()) {
        ok = false;
        break;
      }
      error_code error;
      co_await arrived->async_wait(to_error(error));
      continue;
    }
    complete = piece->complete;
    if (piece->overflows || reply->gone()) {
      ok = false;
      break;
    }
    stream.expires_after(limits.write_time);
    error_code error;
    if (piece->head && !piece->streams) {
      form.keep_alive = keep_alive && !drains;
      ok = co_await write_response(stream, *piece->head, form, limits.write_time);
      break;
    }
    if (piece->head) {
      error = co_await writer.write_head(*piece->head);
      if (!writer.in_chunks()) keep_alive = false;
    }
    if (!error) error = co_await writer.write_part(piece->text);
    if (piece->broken) {
      ok = false;
      break;
    }
    if (!error && complete) error = co_await writer.write_end();
    ok = !error;
    stream.expires_never();
  }
  if (!ok) reply->leave();
  client->over = true;
  client->pause.cancel();
  error_code ignored;
  stream.socket().cancel(ignored);  // ends watch()
  co_return ok&& keep_alive;
}

// Sends the error and reads on for a moment: otherwise a client that still sends would see a reset
// connection instead of the reply.
asio::awaitable<void> HttpServer::State::refuse(beast::tcp_stream& stream,
                                                const HttpResponse& response) {
  const ReplyForm form;
  const bool sent = co_await write_response(stream, response, form, limits.write_time);
  if (!sent) co_return;
  error_code error;
  stream.socket().shutdown(tcp::socket::shutdown_send, error);
  constexpr std::chrono::seconds kLinger(2);
  constexpr std::size_t kMaxRead = 64 * 1024 * 1024;
  stream.expires_after(kLinger);
  std::vector<char> rest(64 * 1024);
  std::size_t n_read = 0;
  while (!error && n_read < kMaxRead) {
    n_read += co_await stream.async_read_some(asio::buffer(rest), to_error(error));
  }
}

HttpServer::HttpServer(const HttpLimits& limits, HttpHandler handler, HttpErrorBody error_body)
    : state_(std::make_unique<State>(limits, std::move(handler), std::move(error_body))) {}

HttpServer::~HttpServer() {
  state_->context.stop();
  const std::lock_guard lock(state_->gate->mutex);
  state_->gate->context = nullptr;
}

int HttpServer::listen(const std::string& host, int port) {
  constexpr const char* kOperation = "serve";
  error_code error;
  const auto address = asio::ip::make_address(host, error);
  tcp::endpoint endpoint;
  const auto at = [&] { return fmt::format("{}:{}", host, port); };
  if (!error) {
    endpoint = {address, static_cast<std::uint16_t>(port)};
  } else {
    tcp::resolver resolver(state_->context);
    const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, error);
    if (error || found.empty())
      throw Error(kOperation, "--host", "an address of this machine", host);
    endpoint = found.begin()->endpoint();
  }
  tcp::acceptor& acceptor = state_->acceptor;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    throw Error(kOperation, at(), "a free address and port", error.message());
  }
  asio::co_spawn(state_->context, state_->accept(), asio::detached);
  return acceptor.local_endpoint().port();
}

void HttpServer::run() { state_->context.run(); }

void HttpServer::drain() {
  asio::post(state_->context, [state = state_.get()] {
    state->drains = true;
    error_code ignored;
    state->acceptor.close(ignored);
    state->retry.cancel();
    for (beast::tcp_stream* const stream : state->idle) stream->cancel();
    if (state->n_connections == 0) state->context.stop();
  });
}

void HttpServer::stop() { state_->context.stop(); }

int HttpServer::n_connections() const { return state_->n_connections; }

}  // namespace outrider::server
