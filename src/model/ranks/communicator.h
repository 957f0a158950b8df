// SPDX-License-Identifier: Apache-2.0
// Communication between the ranks of a model. A rank is one of the processes (in tests: one of the
// threads) that hold a model together; rank 0 leads.
#ifndef OUTRIDER_MODEL_RANKS_COMMUNICATOR_H_
#define OUTRIDER_MODEL_RANKS_COMMUNICATOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/ranks/transport.h"

namespace outrider {

// All calls except give_up() and finish() are collective: every rank makes the same ones in the
// same order. They throw LostRank, with the rank concerned, if a rank was silent for too long, gave
// up or cannot be reached; after that, all calls throw the same again. One thread at a time.
class Communicator {
 public:
  // How long ranks behind the first one wait, where that waits for timeout_seconds: by so much more
  // that its verdict reaches them in time.
  static double follower_seconds(double timeout_seconds) { return 1.5 * timeout_seconds + 1; }

  // timeout_seconds: how long others may be silent within a pass before rank 0 gives up. The other
  // ranks wait clearly longer (follower_seconds): of several that miss one, rank 0 is the first to
  // say which, and the others hear it instead of blaming whoever waits like them.
  Communicator(std::unique_ptr<Transport> transport, double timeout_seconds);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return transport_->rank(); }
  int n_ranks() const { return transport_->n_ranks(); }
  bool leads() const { return rank() == 0; }

  double timeout_seconds() const { return timeout_seconds_; }
  // What the constructor was given: the same on every rank, or ranks would miss one another.
  double agreed_timeout_seconds() const { return agreed_timeout_seconds_; }

  // While *stop is set, by a signal handler perhaps, this rank waits for the others no longer than
  // it must: not at all while they load, and rank 0 for kStopped_seconds in each exchange of a
  // pass. Calls throw LostRank then, with this rank as the one that gave up. In passes the other
  // ranks go on as rank 0 does. `stop` outlives this. Called before the first collective call.
  void stop_waiting_when(const std::atomic<bool>* stop) { stop_ = stop; }
  // Ranks that work bring a gather within that; one that hangs does not.
  static constexpr double kStopped_seconds = 5;

  // How long to wait for the others. Between passes, too, rank 0 sends something more often than
  // the others wait (heartbeat.h).
  enum class Patience {
    pass,     // timeout_seconds()
    loading,  // an hour: ranks load their parts at their own speed
  };

  // all: the bytes of every rank, n_bytes[r] for rank r, concatenated in the order of ranks. `mine`
  // may be its own place in `all`.
  void all_gather(std::span<const std::byte> mine, std::span<const std::size_t> n_bytes,
                  std::byte* all);
  // The same for rank 0 alone; others may pass null.
  void gather(std::span<const std::byte> mine, std::span<const std::size_t> n_bytes,
              std::byte* all);
  // Rank 0's bytes, on every rank.
  void broadcast(std::span<std::byte> bytes, Patience patience = Patience::pass);
  void barrier();
  // Rank 0 waits for a sign of each of the others; they do not wait.
  void confirm();
  // A text of every rank, in the order of ranks, on every rank. Throws Error, the same on every
  // rank, if one is longer than kMaxTextBytes.
  static constexpr std::size_t kMaxTextBytes = std::size_t{1} << 20;
  std::vector<std::string> exchange_texts(std::string_view mine, Patience patience);

  // The others' next call, or the one that they wait in, throws LostRank: with what this rank's own
  // calls throw, if they do so already, else with this rank and these words. This rank's, too.
  void give_up(std::string_view why) noexcept;
  // Of a rank that is done: rank 0 waits for the others, a few seconds at most, and they for rank
  // 0. Behind a failure they do so for a day, if rank 0 is not what is lost: where one process
  // ends, a launcher ends the others, and rank 0 may still have to say what happened, to a server's
  // clients. A rank that gave up because it was stopped (stop_waiting_when) waits a few seconds.
  void finish() noexcept;

  // The message of the calls' error; empty: none yet. Thread-safe.
  std::string failure() const;
  // Whether rank 0 is lost, so that no other rank reports it.
  bool has_lost_leader() const;

 private:
  void gather(std::span<const std::byte> mine, std::span<const std::size_t> n_bytes, std::byte* all,
              bool to_all, Patience patience);
  void exchange(const Exchange& exchange, Patience patience);
  // What an exchange of texts sends and receives: of one call, unless that fails.
  struct TextRoom {
    std::uint64_t length = 0;
    std::string mine;
    std::vector<std::uint64_t> lengths;  // (n_ranks)
    std::string all;
  };
  void exchange_texts(TextRoom& room, Patience patience);
  bool leader_is_lost() const;  // with the mutex held
  // The first failure stays.
  void note_failure(int culprit, std::string what, bool gave_up);

  std::unique_ptr<Transport> transport_;
  double agreed_timeout_seconds_;
  double timeout_seconds_;  // this rank's own
  const std::atomic<bool>* stop_ = nullptr;
  // A transport may still write and read there, until this rank has given up (transport.h).
  std::unique_ptr<TextRoom> abandoned_;
  std::vector<Exchange::Piece> pieces_;  // (n_ranks)

  mutable std::mutex mutex_;  // guards the members after it
  int culprit_ = -1;
  std::string failure_;
  bool gave_up_ = false;   // a rank said so, perhaps this one
  bool has_told_ = false;  // the others, of the failure
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_RANKS_COMMUNICATOR_H_
