// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/bytes_of.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "run ranks";
// The prefix of a message in which a rank reports its own failure.
constexpr const char* kGaveUp = "gave up: ";
// Waits for a rank that reads its part from a slow disk while others have theirs cached.
constexpr double kLoading_seconds = 3600;
// The longest time to finish; shorter if other ranks are lost already.
constexpr double kFinish_seconds = 10;
constexpr double kLostFinish_seconds = 2;
// How long rank 0 may continue without using its model.
constexpr double kLeader_seconds = 86400;

}  // namespace

Communicator::Communicator(std::unique_ptr<Transport> transport, double timeout_seconds)
    : transport_(std::move(transport)),
      agreed_timeout_seconds_(timeout_seconds),
      timeout_seconds_(transport_->rank() == 0 ? timeout_seconds
                                               : follower_seconds(timeout_seconds)),
      pieces_(static_cast<std::size_t>(transport_->n_ranks())) {}

Communicator::~Communicator() = default;

std::string Communicator::failure() const {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) return {};
  const std::string who = culprit_ < 0 ? "a rank" : fmt::format("rank {}", culprit_);
  return fmt::format("{} of {}: {}", who, n_ranks(), failure_);
}

bool Communicator::has_lost_leader() const {
  const std::lock_guard lock(mutex_);
  return leader_is_lost();
}

bool Communicator::leader_is_lost() const {
  return culprit_ == 0 && !failure_.starts_with(kGaveUp);
}

void Communicator::note_failure(int culprit, std::string what, bool gave_up) {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) return;
  culprit_ = culprit;
  failure_ = what.empty() ? "lost" : std::move(what);
  gave_up_ = gave_up;
}

void Communicator::exchange(const Exchange& exchange, Patience patience) {
  const auto fail_if_lost = [this] {
    const std::string problem = failure();
    if (problem.empty()) return;
    const std::size_t colon = problem.find(": ");
    throw LostRank(kOperation, problem.substr(0, colon), problem.substr(colon + 2));
  };
  fail_if_lost();
  const bool is_loading = patience == Patience::loading;
  const double seconds = is_loading ? kLoading_seconds : timeout_seconds_;
  WaitLimit limit{.max_seconds = seconds};
  // Rank 0 decides how a pass ends, and the others learn of it.
  if (is_loading || leads()) {
    limit.stop = stop_;
    limit.stopped_seconds = is_loading ? 0 : kStopped_seconds;
  }
  const Transport::Status status = transport_->exchange(exchange, limit);
  if (status == Transport::Status::done) return;
  const int culprit = transport_->culprit();
  if (status == Transport::Status::silent) {
    note_failure(culprit, fmt::format("nothing came from it for {:g} s", seconds), false);
  } else if (status == Transport::Status::stopped) {
    note_failure(rank(),
                 fmt::format("{}interrupted while it waited for rank {}{}", kGaveUp, culprit,
                             is_loading ? " to load the model" : ""),
                 false);
  } else if (status == Transport::Status::given_up) {
    note_failure(culprit, transport_->reason(), true);
  } else {
    note_failure(culprit, transport_->reason(), false);
  }
  fail_if_lost();
}

void Communicator::gather(std::span<const std::byte> mine, std::span<const std::size_t> n_bytes,
                          std::byte* all, bool to_all, Patience patience) {
  const auto me = static_cast<std::size_t>(rank());
  const bool receives = to_all || leads();
  Exchange exchange;
  if (to_all) {
    exchange.to = exchange.from = Exchange::Peers::others;
  } else if (leads()) {
    exchange.from = Exchange::Peers::others;
  } else {
    exchange.to = Exchange::Peers::first;
  }
  exchange.received = pieces_.data();
  // A transport counts bytes in ints: longer parts are sent in pieces, equally many on every rank.
  const std::size_t most = transport_->max_bytes();
  const std::size_t longest =
      n_bytes.empty() ? 0 : *std::max_element(n_bytes.begin(), n_bytes.end());
  std::size_t done = 0;
  do {
    std::size_t at = 0;
    for (std::size_t rank = 0; rank < n_bytes.size(); ++rank) {
      const std::size_t begin = std::min(done, n_bytes[rank]);
      const std::size_t n = std::min(most, n_bytes[rank] - begin);
      pieces_[rank] = {.at = receives ? all + at + begin : nullptr, .n_bytes = n};
      if (rank == me) {
        exchange.sent = mine.data() + begin;
        exchange.n_sent = n;
      }
      at += n_bytes[rank];
    }
    if (receives && exchange.n_sent > 0 && pieces_[me].at != exchange.sent) {
      std::memmove(pieces_[me].at, exchange.sent, exchange.n_sent);
    }
    this->exchange(exchange, patience);
    done += most;
  } while (done < longest);
}

void Communicator::all_gather(std::span<const std::byte> mine, std::span<const std::size_t> n_bytes,
                              std::byte* all) {
  gather(mine, n_bytes, all, true, Patience::pass);
}

void Communicator::gather(std::span<const std::byte> mine, std::span<const std::size_t> n_bytes,
                          std::byte* all) {
  gather(mine, n_bytes, all, false, Patience::pass);
}

void Communicator::broadcast(std::span<std::byte> bytes, Patience patience) {
  Exchange exchange;
  if (leads()) {
    exchange.to = Exchange::Peers::others;
  } else {
    exchange.from = Exchange::Peers::first;
  }
  exchange.received = pieces_.data();
  const std::size_t most = transport_->max_bytes();
  std::size_t done = 0;
  do {
    const std::size_t n = std::min(most, bytes.size() - done);
    exchange.sent = bytes.data() + done;
    exchange.n_sent = n;
    pieces_.front() = {.at = bytes.data() + done, .n_bytes = n};
    this->exchange(exchange, patience);
    done += n;
  } while (done < bytes.size());
}

void Communicator::barrier() {
  const std::vector<std::size_t> none(pieces_.size(), 0);
  gather({}, none, nullptr, true, Patience::pass);
}

void Communicator::confirm() {
  const std::vector<std::size_t> none(pieces_.size(), 0);
  gather({}, none, nullptr, false, Patience::pass);
}

std::vector<std::string> Communicator::exchange_texts(std::string_view mine, Patience patience) {
  auto buffers = std::make_unique<TextBuffers>();
  buffers->mine = mine;
  try {
    exchange_texts(*buffers, patience);
  } catch (...) {
    abandoned_ = std::move(buffers);
    throw;
  }
  std::vector<std::string> texts;
  std::size_t at = 0;
  for (const std::uint64_t length : buffers->lengths) {
    texts.push_back(buffers->all.substr(at, length));
    at += length;
  }
  return texts;
}

void Communicator::exchange_texts(TextBuffers& buffers, Patience patience) {
  const auto n = pieces_.size();
  buffers.length = buffers.mine.size();
  buffers.lengths.resize(n);
  const std::vector<std::size_t> words(n, sizeof buffers.length);
  gather(bytes_of(buffers.length), words, reinterpret_cast<std::byte*>(buffers.lengths.data()),
         true, patience);
  // No memory is allocated for an impossible length of a text. Every rank sees the same lengths.
  for (std::size_t rank = 0; rank < n; ++rank) {
    if (buffers.lengths[rank] <= kMaxTextBytes) continue;
    throw Error(kOperation, fmt::format("rank {} of {}", rank, n),
                fmt::format("a text of at most {} bytes", kMaxTextBytes),
                fmt::format("one of {}", buffers.lengths[rank]));
  }
  const std::vector<std::size_t> n_bytes(buffers.lengths.begin(), buffers.lengths.end());
  buffers.all.resize(std::accumulate(n_bytes.begin(), n_bytes.end(), std::size_t{0}));
  gather(std::as_bytes(std::span(buffers.mine)), n_bytes,
         reinterpret_cast<std::byte*>(buffers.all.data()), true, patience);
}

void Communicator::give_up(std::string_view why) noexcept {
  try {
    int culprit = 0;
    std::string words;
    {
      const std::lock_guard lock(mutex_);
      // All ranks have been told already. (If one was silent, only this rank may know.)
      if (gave_up_ || has_told_) return;
      has_told_ = true;
      if (failure_.empty()) {
        culprit_ = rank();
        failure_ = fmt::format("{}{}", kGaveUp, why);
        gave_up_ = true;
      }
      culprit = culprit_;
      words = failure_;
    }
    transport_->give_up(culprit, words.c_str());
  } catch (...) {
    transport_->give_up(rank(), "gave up: out of memory");
  }
}

void Communicator::finish() noexcept {
  double seconds = kFinish_seconds;
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) {
      const bool was_stopped = culprit_ == rank() && stop_ != nullptr && stop_->load();
      seconds = leads() || leader_is_lost() || was_stopped ? kLostFinish_seconds : kLeader_seconds;
    }
  }
  transport_->finish(seconds);
}

}  // namespace outrider
