// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/in_process_ranks.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace outrider {
namespace {

using Message = std::vector<std::byte>;

// State shared by all ranks.
struct Mailboxes {
  explicit Mailboxes(int n_ranks)
      : n_ranks(n_ranks),
        boxes(static_cast<std::size_t>(n_ranks) * static_cast<std::size_t>(n_ranks)) {}

  std::deque<Message>& from_to(int from, int to) {
    return boxes[static_cast<std::size_t>(from * n_ranks + to)];
  }

  const int n_ranks;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::deque<Message>> boxes;
  // set by the first rank that gave up
  bool is_given_up = false;
  int culprit = -1;
  std::string why;
};

class InProcessTransport final : public Transport {
 public:
  InProcessTransport(std::shared_ptr<Mailboxes> mailboxes, int rank, std::size_t max_bytes)
      : mailboxes_(std::move(mailboxes)), rank_(rank), max_bytes_(max_bytes) {}

  int rank() const override { return rank_; }
  int n_ranks() const override { return mailboxes_->n_ranks; }
  std::size_t max_bytes() const override { return max_bytes_; }
  int culprit() const override { return culprit_; }
  const char* reason() const override { return reason_.c_str(); }

  Status exchange(const Exchange& exchange, const WaitLimit& limit) noexcept override {
    try {
      return run(exchange, limit);
    } catch (const std::exception& error) {
      culprit_ = rank_;
      reason_ = error.what();
      return Status::broken;
    }
  }

  void give_up(int culprit, const char* why) noexcept override {
    const std::lock_guard lock(mailboxes_->mutex);
    if (mailboxes_->is_given_up) return;
    mailboxes_->is_given_up = true;
    mailboxes_->culprit = culprit;
    mailboxes_->why = why;
    mailboxes_->changed.notify_all();
  }

  void finish(double) noexcept override {}

 private:
  template <typename Use>
  void for_peers(Exchange::Peers peers, const Use& use) const {
    if (peers == Exchange::Peers::none) return;
    const int end = peers == Exchange::Peers::first ? 1 : n_ranks();
    for (int peer = 0; peer < end; ++peer) {
      if (peer != rank_) use(peer);
    }
  }

  Status run(const Exchange& exchange, const WaitLimit& limit) {
    std::unique_lock lock(mailboxes_->mutex);
    for_peers(exchange.to, [&](int peer) {
      mailboxes_->from_to(rank_, peer).emplace_back(exchange.sent, exchange.sent + exchange.n_sent);
    });
    mailboxes_->changed.notify_all();
    Status status = Status::done;
    for_peers(exchange.from, [&](int peer) {
      if (status == Status::done) status = receive(lock, peer, exchange.received[peer], limit);
    });
    return status;
  }

  Status receive(std::unique_lock<std::mutex>& lock, int peer, const Exchange::Piece& piece,
                 const WaitLimit& limit) {
    std::deque<Message>& mail = mailboxes_->from_to(peer, rank_);
    const bool is_stopped =
        wait(lock, limit, [&] { return !mail.empty() || mailboxes_->is_given_up; });
    culprit_ = peer;
    // Messages sent before a rank gave up still count: a rank that can continue finds its own
    // error.
    if (mail.empty() && mailboxes_->is_given_up) {
      culprit_ = mailboxes_->culprit;
      reason_ = mailboxes_->why;
      return Status::given_up;
    }
    if (mail.empty()) return is_stopped ? Status::stopped : Status::silent;
    if (mail.front().size() != piece.n_bytes) {
      reason_ = "sent " + std::to_string(mail.front().size()) + " bytes in the place of " +
                std::to_string(piece.n_bytes);
      return Status::broken;
    }
    if (piece.n_bytes > 0) std::memcpy(piece.at, mail.front().data(), piece.n_bytes);
    mail.pop_front();
    return Status::done;
  }

  // Returns whether WaitLimit::stop ended it.
  template <typename IsOver>
  bool wait(std::unique_lock<std::mutex>& lock, const WaitLimit& limit, const IsOver& is_over) {
    using Clock = std::chrono::steady_clock;
    using Seconds = std::chrono::duration<double>;
    // Code that sets `stop` in a signal handler cannot wake this thread.
    constexpr Seconds kBetweenLooks{0.01};
    constexpr Seconds kLong{3600};
    const Clock::time_point begin = Clock::now();
    std::optional<Clock::time_point> stopped_at;
    while (!is_over()) {
      const Clock::time_point now = Clock::now();
      if (limit.stop != nullptr && limit.stop->load()) {
        if (!stopped_at) stopped_at = now;
        if (Seconds(now - *stopped_at).count() >= limit.stopped_seconds) return true;
      }
      Seconds left = kLong;
      if (limit.max_seconds > 0) left = Seconds(limit.max_seconds) - Seconds(now - begin);
      if (left.count() <= 0) return false;
      if (limit.stop != nullptr) left = std::min(left, kBetweenLooks);
      mailboxes_->changed.wait_for(lock, left);
    }
    return false;
  }

  std::shared_ptr<Mailboxes> mailboxes_;
  int rank_;
  std::size_t max_bytes_;
  int culprit_ = -1;
  std::string reason_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> make_in_process_ranks(int n_ranks, std::size_t max_bytes) {
  const auto mailboxes = std::make_shared<Mailboxes>(n_ranks);
  std::vector<std::unique_ptr<Transport>> ends;
  ends.reserve(static_cast<std::size_t>(n_ranks));
  for (int rank = 0; rank < n_ranks; ++rank) {
    ends.push_back(std::make_unique<InProcessTransport>(mailboxes, rank, max_bytes));
  }
  return ends;
}

}  // namespace outrider
