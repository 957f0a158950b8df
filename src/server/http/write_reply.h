// SPDX-License-Identifier: Apache-2.0
// Writes replies to a connection: whole responses, and streams part by part.
#ifndef OUTRIDER_SERVER_HTTP_WRITE_REPLY_H_
#define OUTRIDER_SERVER_HTTP_WRITE_REPLY_H_

#include <boost/asio/awaitable.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <chrono>
#include <string>

#include "server/http/http_server.h"

namespace outrider::server {

// Makes an asynchronous call return its error code by value.
inline auto to_error(boost::system::error_code& error) {
  return boost::asio::redirect_error(boost::asio::use_awaitable, error);
}

// The form of the reply to a request.
struct ReplyForm {
  unsigned version = 11;      // of HTTP, 10 or 11
  bool keep_alive = false;    // the connection serves further requests
  bool without_body = false;  // the method is HEAD
};

// Writes a whole response within max_time. Returns false if it cannot be written. The arguments
// must be variables: GCC 12 destroys temporary aggregates twice if they are arguments of
// coroutines.
boost::asio::awaitable<bool> write_response(boost::beast::tcp_stream& connection,
                                            const HttpResponse& response, const ReplyForm& form,
                                            std::chrono::milliseconds max_time);

// Writes a streamed reply, in this order: the head, any number of parts, the end. The connection's
// time-out is the caller's. Not thread-safe.
class StreamWriter {
 public:
  // The connection must outlive it.
  StreamWriter(boost::beast::tcp_stream& connection, const ReplyForm& form)
      : connection_(&connection), form_(form) {}

  // Whether parts are written as chunks. A client with HTTP/1.0 does not know chunks: the end of
  // the connection is the end of the body.
  bool in_chunks() const { return form_.version >= 11; }

  boost::asio::awaitable<boost::system::error_code> write_head(const HttpResponse& head) const;
  boost::asio::awaitable<boost::system::error_code> write_part(const std::string& part) const;
  boost::asio::awaitable<boost::system::error_code> write_end() const;

 private:
  boost::beast::tcp_stream* connection_;
  ReplyForm form_;
};

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_HTTP_WRITE_REPLY_H_
