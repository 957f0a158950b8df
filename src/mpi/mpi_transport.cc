// SPDX-License-Identifier: Apache-2.0
// The module outrider_mpi.so: a Transport over MPI, point to point. Messages of an exchange go
// directly between ranks, so an exchange takes one network latency, whatever the number of ranks.
//
// It waits by polling, never by a blocking MPI call: the wait must end when a peer is lost or gives
// up.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "model/ranks/transport.h"

namespace outrider {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kDataTag = 1;
constexpr int kGivenUpTag = 2;
constexpr int kFinishTag = 3;
constexpr std::size_t kReasonBytes = 512;

// The message of a rank that gives up.
struct LastWords {
  std::int32_t culprit = -1;
  std::array<char, kReasonBytes> why{};  // zero-terminated
};
// MPI counts with ints; this is less, so that a message also fits into the network's buffers.
constexpr std::size_t kMaxBytes = std::size_t{1} << 28;

// How a rank waits: first polling for messages within a pass, then yielding the processor, then
// sleeping for growing times. So ranks that share a processor do not starve each other, and an idle
// server uses almost no time.
class Waiting {
 public:
  void pause() {
    ++n_;
    if (n_ < kAwake) return;
    if (n_ < kYielding) {
      ::sched_yield();
      return;
    }
    const auto waited = Clock::now() - begin_;
    std::this_thread::sleep_for(waited > std::chrono::seconds(1) ? std::chrono::microseconds(1000)
                                                                 : std::chrono::microseconds(50));
  }
  // Checked now and then: reading the time takes longer than polling for a message.
  bool is_longer_than(double seconds) const {
    if (seconds <= 0 || n_ % 64 != 0) return false;
    return std::chrono::duration<double>(Clock::now() - begin_).count() > seconds;
  }

 private:
  static constexpr std::int64_t kAwake = 200;
  static constexpr std::int64_t kYielding = 20'000;
  Clock::time_point begin_ = Clock::now();
  std::int64_t n_ = 0;
};

class MpiTransport final : public Transport {
 public:
  MpiTransport() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks_);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const auto n = static_cast<std::size_t>(n_ranks_);
    last_words_.resize(n);
    given_up_.assign(n, MPI_REQUEST_NULL);
    receives_.assign(n, MPI_REQUEST_NULL);
    sends_.assign(n, MPI_REQUEST_NULL);
    my_words_sent_.assign(n, MPI_REQUEST_NULL);
    end_received_.assign(n, MPI_REQUEST_NULL);
    end_sent_.assign(n, MPI_REQUEST_NULL);
    for (int peer = 0; peer < n_ranks_; ++peer) {
      if (peer == rank_) continue;
      const auto i = static_cast<std::size_t>(peer);
      MPI_Irecv(&last_words_[i], static_cast<int>(sizeof(LastWords)), MPI_BYTE, peer, kGivenUpTag,
                MPI_COMM_WORLD, &given_up_[i]);
    }
  }

  int rank() const override { return rank_; }
  int n_ranks() const override { return n_ranks_; }
  std::size_t max_bytes() const override { return kMaxBytes; }
  int culprit() const override { return culprit_; }
  const char* reason() const override { return reason_.data(); }

  Status exchange(const Exchange& exchange, const WaitLimit& limit) noexcept override {
    return run(exchange, limit);
  }

  void give_up(int culprit, const char* why) noexcept override {
    // (A rank that gives up after a failed exchange still has that message buffer.)
    my_words_.culprit = culprit;
    std::snprintf(my_words_.why.data(), my_words_.why.size(), "%s", why);
    for_peers(Exchange::Peers::others, [&](int peer, std::size_t i) {
      if (my_words_sent_[i] != MPI_REQUEST_NULL) return;
      if (MPI_Isend(&my_words_, static_cast<int>(sizeof(my_words_)), MPI_BYTE, peer, kGivenUpTag,
                    MPI_COMM_WORLD, &my_words_sent_[i]) != MPI_SUCCESS) {
        my_words_sent_[i] = MPI_REQUEST_NULL;
      }
    });
    wait_for(my_words_sent_, kLastWords_seconds);
  }

  // MPI_Finalize waits for every rank without a time limit. So all others report to rank 0 first,
  // and it tells them whether everyone has. If that fails, or something happens afterwards,
  // processes exit without it.
  void finish(double max_seconds) noexcept override {
    if (must_not_progress_) {
      if (rank_ > 0) sleep_beside_launcher(max_seconds);
      return;
    }
    if (!(rank_ == 0 ? all_have_come(max_seconds) : is_told_to_end(max_seconds))) return;
    for (MPI_Request& request : given_up_) {
      if (request == MPI_REQUEST_NULL) continue;
      MPI_Cancel(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    finalize_or_exit(kFinalize_seconds);
  }

 private:
  static constexpr double kLastWords_seconds = 1;
  static constexpr unsigned kFinalize_seconds = 10;
  static constexpr double kAbandon_seconds = 0.2;
  // Between two polls of a rank that waits for rank 0's end.
  static constexpr std::chrono::milliseconds kDoze{20};

  // Whether all requests are done within max_seconds.
  static bool wait_for(std::vector<MPI_Request>& requests, double max_seconds) noexcept {
    Waiting waiting;
    int all_done = 0;
    while (!waiting.is_longer_than(max_seconds)) {
      if (MPI_Testall(static_cast<int>(requests.size()), requests.data(), &all_done,
                      MPI_STATUSES_IGNORE) != MPI_SUCCESS) {
        return false;
      }
      if (all_done != 0) return true;
      waiting.pause();
    }
    return false;
  }

  // On rank 0: whether all others have reported; tells them the result.
  bool all_have_come(double max_seconds) noexcept {
    for_peers(Exchange::Peers::others, [&](int peer, std::size_t i) {
      MPI_Irecv(nullptr, 0, MPI_BYTE, peer, kFinishTag, MPI_COMM_WORLD, &end_received_[i]);
    });
    may_finalize_ = wait_for(end_received_, max_seconds) ? 1 : 0;
    for_peers(Exchange::Peers::others, [&](int peer, std::size_t i) {
      MPI_Isend(&may_finalize_, 1, MPI_BYTE, peer, kFinishTag, MPI_COMM_WORLD, &end_sent_[i]);
    });
    return wait_for(end_sent_, kLastWords_seconds) && may_finalize_ != 0;
  }

  // On the other ranks.
  bool is_told_to_end(double max_seconds) noexcept {
    MPI_Irecv(&may_finalize_, 1, MPI_BYTE, 0, kFinishTag, MPI_COMM_WORLD, &end_received_.front());
    MPI_Isend(nullptr, 0, MPI_BYTE, 0, kFinishTag, MPI_COMM_WORLD, &end_sent_.front());
    const auto end = Clock::now() + std::chrono::duration<double>(max_seconds);
    bool is_told = wait_for(end_received_, std::min(max_seconds, kLastWords_seconds));
    while (!is_told && Clock::now() < end) {
      std::this_thread::sleep_for(kDoze);
      int has_come = 0;
      if (MPI_Test(&end_received_.front(), &has_come, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return false;
      is_told = has_come != 0;
    }
    if (is_told && may_finalize_ == 0) {
      // mpirun kills all processes when one exits like that. Rank 0 may still have to print its
      // error.
      std::this_thread::sleep_for(std::chrono::duration<double>(kLastWords_seconds));
    }
    return is_told && may_finalize_ != 0;
  }

  // Exits without MPI.
  static void sleep_beside_launcher(double max_seconds) noexcept {
    const auto end = Clock::now() + std::chrono::duration<double>(max_seconds);
    const pid_t launcher = ::getppid();
    while (Clock::now() < end && ::getppid() == launcher) std::this_thread::sleep_for(kDoze);
  }

  // A thread that watches MPI_Finalize would have to be created, which may fail; a signal need not.
  static void finalize_or_exit(unsigned seconds) noexcept {
    struct sigaction action = {};
    action.sa_handler = [](int) {
      constexpr char kLine[] = "outrider: [end ranks] MPI: expected an end, got none in time\n";
      if (::write(STDERR_FILENO, kLine, sizeof(kLine) - 1) < 0) {
        // The result is not needed.
      }
      ::_exit(1);
    };
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGALRM, &action, nullptr);
    ::alarm(seconds);
    MPI_Finalize();
    ::alarm(0);
  }

  template <typename Use>
  void for_peers(Exchange::Peers peers, const Use& use) const {
    if (peers == Exchange::Peers::none) return;
    const int end = peers == Exchange::Peers::first ? 1 : n_ranks_;
    for (int peer = 0; peer < end; ++peer) {
      if (peer != rank_) use(peer, static_cast<std::size_t>(peer));
    }
  }

  Status run(const Exchange& exchange, const WaitLimit& limit) noexcept {
    constexpr int kTag = kDataTag;
    Status status = Status::done;
    for_peers(exchange.from, [&](int peer, std::size_t i) {
      const Exchange::Piece& piece = exchange.received[i];
      note(MPI_Irecv(piece.at, static_cast<int>(piece.n_bytes), MPI_BYTE, peer, kTag,
                     MPI_COMM_WORLD, &receives_[i]),
           peer, status);
    });
    for_peers(exchange.to, [&](int peer, std::size_t i) {
      note(MPI_Isend(exchange.sent, static_cast<int>(exchange.n_sent), MPI_BYTE, peer, kTag,
                     MPI_COMM_WORLD, &sends_[i]),
           peer, status);
    });
    Waiting waiting;
    std::optional<Clock::time_point> stopped_at;
    while (status == Status::done) {
      bool is_over = true;
      for_peers(exchange.from, [&](int peer, std::size_t i) {
        is_over &= test_receive(peer, i, exchange.received[i].n_bytes, status);
      });
      for_peers(exchange.to,
                [&](int peer, std::size_t i) { is_over &= test_send(peer, i, status); });
      if (is_over || status != Status::done) break;
      hear_who_gives_up(status);
      if (status == Status::done && waiting.is_longer_than(limit.max_seconds)) {
        status = Status::silent;
      } else if (status == Status::done && is_stopped(limit, stopped_at)) {
        status = Status::stopped;
      }
      if (status == Status::silent || status == Status::stopped) {
        culprit_ = first_silent(exchange);
      }
      waiting.pause();
    }
    if (status != Status::done) abandon();
    return status;
  }

  // stopped_at: when `stop` was first found to be set.
  static bool is_stopped(const WaitLimit& limit,
                         std::optional<Clock::time_point>& stopped_at) noexcept {
    if (limit.stop == nullptr || !limit.stop->load(std::memory_order_relaxed)) return false;
    const Clock::time_point now = Clock::now();
    if (!stopped_at) stopped_at = now;
    return std::chrono::duration<double>(now - *stopped_at).count() >= limit.stopped_seconds;
  }

  void note(int code, int peer, Status& status) noexcept {
    if (code == MPI_SUCCESS || status != Status::done) return;
    status = Status::broken;
    culprit_ = peer;
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int n = 0;
    MPI_Error_string(code, text.data(), &n);
    std::snprintf(reason_.data(), reason_.size(), "%.400s", text.data());
  }

  // Whether the message has arrived.
  bool test_receive(int peer, std::size_t i, std::size_t n_bytes, Status& status) noexcept {
    if (receives_[i] == MPI_REQUEST_NULL) return true;
    int is_over = 0;
    MPI_Status its{};
    note(MPI_Test(&receives_[i], &is_over, &its), peer, status);
    if (is_over == 0 || status != Status::done) return false;
    int n = 0;
    MPI_Get_count(&its, MPI_BYTE, &n);
    if (static_cast<std::size_t>(n) != n_bytes) {
      status = Status::broken;
      culprit_ = peer;
      std::snprintf(reason_.data(), reason_.size(), "sent %d bytes in the place of %zu", n,
                    n_bytes);
    }
    return true;
  }

  bool test_send(int peer, std::size_t i, Status& status) noexcept {
    if (sends_[i] == MPI_REQUEST_NULL) return true;
    int is_over = 0;
    note(MPI_Test(&sends_[i], &is_over, MPI_STATUS_IGNORE), peer, status);
    return is_over != 0;
  }

  void hear_who_gives_up(Status& status) noexcept {
    for (int peer = 0; peer < n_ranks_; ++peer) {
      const auto i = static_cast<std::size_t>(peer);
      if (given_up_[i] == MPI_REQUEST_NULL) continue;
      int has_come = 0;
      note(MPI_Test(&given_up_[i], &has_come, MPI_STATUS_IGNORE), peer, status);
      if (has_come == 0 || status != Status::done) continue;
      status = Status::given_up;
      LastWords& words = last_words_[i];
      culprit_ = words.culprit;
      words.why.back() = '\0';
      std::snprintf(reason_.data(), reason_.size(), "%s", words.why.data());
      return;
    }
  }

  int first_silent(const Exchange& exchange) const noexcept {
    int silent = -1;
    const auto find = [&](const std::vector<MPI_Request>& requests) {
      return [&](int peer, std::size_t i) {
        if (silent < 0 && requests[i] != MPI_REQUEST_NULL) silent = peer;
      };
    };
    for_peers(exchange.from, find(receives_));
    for_peers(exchange.to, find(sends_));
    return silent;
  }

  // The caller's buffers may be freed once exchange() has failed. Transfers that do not end within
  // a moment would still access them whenever MPI makes progress, so no further MPI calls may be
  // made.
  void abandon() noexcept {
    for (MPI_Request& request : receives_) {
      if (request != MPI_REQUEST_NULL) MPI_Cancel(&request);
    }
    const bool are_over =
        wait_for(receives_, kAbandon_seconds) && wait_for(sends_, kAbandon_seconds);
    must_not_progress_ = !are_over;
  }

  int rank_ = 0;
  int n_ranks_ = 1;
  std::vector<LastWords> last_words_;  // (n_ranks), of ranks that gave up
  std::vector<MPI_Request> given_up_;  // (n_ranks), receives of last_words_
  std::vector<MPI_Request> receives_;  // (n_ranks), of the current exchange
  std::vector<MPI_Request> sends_;     // (n_ranks)
  int culprit_ = -1;
  std::array<char, kReasonBytes> reason_{};
  bool must_not_progress_ = false;

  // A message sent at the end is kept here, since MPI may read it later.
  LastWords my_words_;
  std::vector<MPI_Request> my_words_sent_;  // (n_ranks)
  std::uint8_t may_finalize_ = 0;
  std::vector<MPI_Request> end_received_;  // (n_ranks)
  std::vector<MPI_Request> end_sent_;      // (n_ranks)
};

}  // namespace
}  // namespace outrider

// Returns null, and the reason, if MPI does not start. The number in its name changes with
// Transport, so that another build's module is not loaded by mistake (mpi_module.cc).
extern "C" outrider::Transport* outrider_start_mpi_2(char* problem, std::size_t n_problem) {
  int is_started = 0;
  MPI_Initialized(&is_started);
  int provided = MPI_THREAD_SINGLE;
  if (is_started != 0) {
    MPI_Query_thread(&provided);
  } else if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS) {
    std::snprintf(problem, n_problem, "expected it to start, got an error");
    return nullptr;
  }
  if (provided < MPI_THREAD_SERIALIZED) {
    std::snprintf(problem, n_problem, "expected calls from any thread, got from one alone");
    return nullptr;
  }
  auto* const transport = new (std::nothrow) outrider::MpiTransport();
  if (transport == nullptr) std::snprintf(problem, n_problem, "expected memory, got none");
  return transport;
}
