// SPDX-License-Identifier: Apache-2.0
// A reply's data, on its way from any thread to its connection.
#ifndef OUTRIDER_SERVER_HTTP_QUEUED_REPLY_H_
#define OUTRIDER_SERVER_HTTP_QUEUED_REPLY_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "server/http/http_server.h"

namespace outrider::server {

// The handler fills it, and the connection takes from it. Thread-safe.
class QueuedReply final : public HttpReply {
 public:
  // wake: makes the connection, from any thread, look for new data; with `true` it aborts the
  // current write. It may be called after the server's end.
  using Wake = std::function<void(bool cut_off)>;
  QueuedReply(std::size_t max_unsent, Wake wake);

  void send(HttpResponse response) override;
  void begin_stream(HttpResponse head) override;
  void write(std::string part) override;
  void end_stream() override;
  void on_gone(std::function<void()> callback) override;
  // The handler is gone, so there will be no more data. The response is sent if nothing was.
  void drop(HttpResponse response);

  // Used by the connection, on its thread.

  struct Piece {
    std::optional<HttpResponse> head;  // in the first piece
    bool streams = false;
    std::string text;
    bool complete = false;
    bool overflows = false;  // the client reads too slowly
    bool broken = false;     // finished, but incomplete
  };
  // The data to send now; nothing if there is none.
  std::optional<Piece> take();
  bool gone() const;
  void leave();
  void awake();

 private:
  template <typename Change>
  void push(const Change& change);

  const std::size_t max_unsent_;
  const Wake wake_;
  mutable std::mutex mutex_;
  std::optional<HttpResponse> head_;
  bool head_taken_ = false;
  bool streams_ = false;
  bool complete_ = false;
  bool gone_ = false;
  bool woken_ = false;
  bool broken_ = false;
  bool overflows_ = false;
  std::deque<std::string> parts_;
  std::size_t unsent_ = 0;
  std::function<void()> on_gone_;
};

// The handler's handle of a reply: if the last one is dropped without an answer, the reply is
// status 500 with this body.
std::shared_ptr<HttpReply> make_reply_handle(std::shared_ptr<QueuedReply> reply,
                                             std::shared_ptr<const HttpErrorBody> error_body);

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_HTTP_QUEUED_REPLY_H_
