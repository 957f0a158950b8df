// SPDX-License-Identifier: Apache-2.0
#include "server/http/queued_reply.h"

#include <utility>

namespace outrider::server {
namespace {

class ReplyHandle final : public HttpReply {
 public:
  ReplyHandle(std::shared_ptr<QueuedReply> reply, std::shared_ptr<const HttpErrorBody> error_body)
      : reply_(std::move(reply)), error_body_(std::move(error_body)) {}
  ~ReplyHandle() override {
    reply_->drop({.status = 500,
                  .body = (*error_body_)(500, "the request was not answered"),
                  .headers = {}});
  }
  ReplyHandle(const ReplyHandle&) = delete;
  ReplyHandle& operator=(const ReplyHandle&) = delete;
  void send(HttpResponse response) override { reply_->send(std::move(response)); }
  void begin_stream(HttpResponse head) override { reply_->begin_stream(std::move(head)); }
  void write(std::string part) override { reply_->write(std::move(part)); }
  void end_stream() override { reply_->end_stream(); }
  void on_gone(std::function<void()> callback) override { reply_->on_gone(std::move(callback)); }

 private:
  std::shared_ptr<QueuedReply> reply_;
  std::shared_ptr<const HttpErrorBody> error_body_;
};

}  // namespace

QueuedReply::QueuedReply(std::size_t max_unsent, Wake wake)
    : max_unsent_(max_unsent), wake_(std::move(wake)) {}

template <typename Change>
void QueuedReply::push(const Change& change) {
  bool cut_off = false;
  {
    const std::lock_guard lock(mutex_);
    if (gone_ || complete_ || overflows_) return;
    change();
    cut_off = overflows_;
    if (complete_) on_gone_ = nullptr;
    if (std::exchange(woken_, true) && !cut_off) return;
  }
  wake_(cut_off);
}

void QueuedReply::send(HttpResponse response) {
  push([&] {
    if (head_) return;
    head_ = std::move(response);
    complete_ = true;
  });
}

void QueuedReply::begin_stream(HttpResponse head) {
  push([&] {
    if (head_) return;
    head_ = std::move(head);
    streams_ = true;
  });
}

void QueuedReply::write(std::string part) {
  push([&] {
    if (!streams_ || part.empty()) return;
    unsent_ += part.size();
    overflows_ = unsent_ > max_unsent_;
    if (overflows_) {
      parts_.clear();
    } else {
      parts_.push_back(std::move(part));
    }
  });
}

void QueuedReply::end_stream() {
  push([&] { complete_ = true; });
}

void QueuedReply::drop(HttpResponse response) {
  push([&] {
    if (head_) {
      broken_ = true;
    } else {
      head_ = std::move(response);
    }
    complete_ = true;
  });
}

void QueuedReply::on_gone(std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (complete_) return;
    if (!gone_) {
      on_gone_ = std::move(callback);
      return;
    }
  }
  callback();
}

std::optional<QueuedReply::Piece> QueuedReply::take() {
  const std::lock_guard lock(mutex_);
  if (!head_ || (head_taken_ && parts_.empty() && !complete_ && !overflows_)) {
    return std::nullopt;
  }
  Piece piece;
  piece.streams = streams_;
  piece.complete = complete_;
  piece.overflows = overflows_;
  piece.broken = broken_;
  if (!head_taken_) piece.head = std::move(*head_);
  head_taken_ = true;
  for (const std::string& part : parts_) piece.text += part;
  parts_.clear();
  unsent_ = 0;
  return piece;
}

bool QueuedReply::gone() const {
  const std::lock_guard lock(mutex_);
  return gone_;
}

void QueuedReply::leave() {
  std::function<void()> callback;
  {
    const std::lock_guard lock(mutex_);
    if (gone_) return;
    gone_ = true;
    if (!complete_) callback = std::move(on_gone_);
    on_gone_ = nullptr;
  }
  wake_(false);
  if (callback) callback();
}

void QueuedReply::awake() {
  const std::lock_guard lock(mutex_);
  woken_ = false;
}

std::shared_ptr<HttpReply> make_reply_handle(std::shared_ptr<QueuedReply> reply,
                                             std::shared_ptr<const HttpErrorBody> error_body) {
  return std::make_shared<ReplyHandle>(std::move(reply), std::move(error_body));
}

}  // namespace outrider::server
