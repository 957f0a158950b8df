// SPDX-License-Identifier: Apache-2.0
#include "server/http/write_reply.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http.hpp>

namespace outrider::server {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

asio::awaitable<bool> write_response(beast::tcp_stream& connection, const HttpResponse& response,
                                     const ReplyForm& form, std::chrono::milliseconds max_time) {
  http::response<http::string_body> message(
      http::int_to_status(static_cast<unsigned>(response.status)), form.version);
  if (!response.content_type.empty()) {
    message.set(http::field::content_type, response.content_type);
  }
  for (const auto& [name, value] : response.headers) message.set(name, value);
  message.keep_alive(form.keep_alive);
  message.body() = response.body;
  message.prepare_payload();
  if (form.without_body) message.body().clear();
  error_code error;
  connection.expires_after(max_time);
  co_await http::async_write(connection, message, to_error(error));
  co_return !error;
}

asio::awaitable<error_code> StreamWriter::write_head(const HttpResponse& head) const {
  http::response<http::empty_body> message(http::int_to_status(static_cast<unsigned>(head.status)),
                                           form_.version);
  message.set(http::field::content_type, head.content_type);
  message.set(http::field::cache_control, "no-cache");
  for (const auto& [name, value] : head.headers) message.set(name, value);
  message.keep_alive(form_.keep_alive && in_chunks());
  if (in_chunks()) message.chunked(true);
  http::response_serializer<http::empty_body> serializer(message);
  error_code error;
  co_await http::async_write_header(*connection_, serializer, to_error(error));
  co_return error;
}

asio::awaitable<error_code> StreamWriter::write_part(const std::string& part) const {
  error_code error;
  if (part.empty() || form_.without_body) co_return error;
  if (in_chunks()) {
    co_await asio::async_write(*connection_, http::make_chunk(asio::buffer(part)), to_error(error));
  } else {
    co_await asio::async_write(*connection_, asio::buffer(part), to_error(error));
  }
  co_return error;
}

asio::awaitable<error_code> StreamWriter::write_end() const {
  error_code error;
  if (in_chunks() && !form_.without_body) {
    co_await asio::async_write(*connection_, http::make_chunk_last(), to_error(error));
  }
  co_return error;
}

}  // namespace outrider::server
