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
  // How long the other ranks wait when rank 0 waits for timeout_seconds: longer, so that the
  // verdict of rank 0 reaches them in time.
  static double follower_seconds(double timeout_seconds) { return 1.5 * timeout_seconds + 1; }

  // timeout_seconds: how long others may be silent within a pass before rank 0 gives up. The other
  // ranks wait clearly longer (follower_seconds). If several ranks miss one, rank 0 is therefore
  // the first to name it, and the others receive that name instead of blaming another rank that
  // waits.
  Communicator(std::unique_ptr<Transport> transport, double timeout_seconds);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return transport_->rank(); }
  int n_ranks() const { return transport_->n_ranks(); }
  bool leads() const { return rank() == 0; }

  double timeout_seconds() const { return timeout_seconds_; }
  // The constructor's argument: it must be the same on every rank, or ranks would lose one another.
  double agreed_timeout_seconds() const { return agreed_timeout_seconds_; }

  // While *stop is set (for example by a signal handler), this rank waits for the others as little
  // as possible: not at all while they load, and on rank 0 for kStopped_seconds in each exchange of
  // a pass. Then calls throw LostRank, with this rank as the one that gave up. In passes the other
  // ranks continue as long as rank 0 does. `stop` must outlive this. Called before the first
  // collective call.
  void stop_waiting_when(const std::atomic<bool>* stop) { stop_ = stop; }
  // Ranks at work complete a gather within this time; one that hangs does not.
  static constexpr double kStopped_seconds = 5;

  // How long to wait for the others. Between passes, too, rank 0 sends messages at shorter
  // intervals than the others wait (heartbeat.h).
  enum class Patience {
    pass,     // timeout_seconds()
    loading,  // an hour: ranks load their parts at their own speed
  };

  // all: the bytes of every rank, n_bytes[r] for rank r, concatenated in the order of ranks. `mine`
  // may be its own place in `all`.
  void all_gather(std::span<const std::byte> mine, std::span<const std::size_t> n_bytes,
                  std::byte* all);
  // The same, on rank 0 only; others may pass null.
  void gather(std::span<const std::byte> mine, std::span<const std::size_t> n_bytes,
              std::byte* all);
  // Copies rank 0's bytes to every rank.
  void broadcast(std::span<std::byte> bytes, Patience patience = Patience::pass);
  void barrier();
  // Rank 0 waits for a message from each of the others; they do not wait.
  void confirm();
  // Returns the texts of all ranks, in the order of ranks, on every rank. Throws Error, the same on
  // every rank, if one is longer than kMaxTextBytes.
  static constexpr std::size_t kMaxTextBytes = std::size_t{1} << 20;
  std::vector<std::string> exchange_texts(std::string_view mine, Patience patience);

  // The others' current or next call throws LostRank, and so does this rank's next call. The error
  // is that of this rank's own calls, if they already throw; otherwise it names this rank, with
  // this message.
  void give_up(std::string_view why) noexcept;
  // Called on a rank that is done: rank 0 waits for the others, a few seconds at most, and they
  // wait for rank 0. After a failure other than the loss of rank 0, they wait for a day: if one
  // process ends, a launcher ends the others, and rank 0 may still have to report the failure to a
  // server's clients. A rank that gave up because it was stopped (stop_waiting_when) waits a few
  // seconds.
  void finish() noexcept;

  // The message of the calls' error; empty if there is none yet. Thread-safe.
  std::string failure() const;
  // Whether rank 0 is lost, so that no other rank reports it.
  bool has_lost_leader() const;

 private:
  void gather(std::span<const std::byte> mine, std::span<const std::size_t> n_bytes, std::byte* all,
              bool to_all, Patience patience);
  void exchange(const Exchange& exchange, Patience patience);
  // The buffers of an exchange of texts: used by one call, and kept longer if it fails.
  struct TextBuffers {
    std::uint64_t length = 0;
    std::string mine;
    std::vector<std::uint64_t> lengths;  // (n_ranks)
    std::string all;
  };
  void exchange_texts(TextBuffers& buffers, Patience patience);
  bool leader_is_lost() const;  // called with the mutex held
  // Only the first failure is recorded.
  void note_failure(int culprit, std::string what, bool gave_up);

  std::unique_ptr<Transport> transport_;
  double agreed_timeout_seconds_;
  double timeout_seconds_;  // of this rank
  const std::atomic<bool>* stop_ = nullptr;
  // A transport may still write and read these buffers, until this rank has given up (transport.h).
  std::unique_ptr<TextBuffers> abandoned_;
  std::vector<Exchange::Piece> pieces_;  // (n_ranks)

  mutable std::mutex mutex_;  // guards the members after it
  int culprit_ = -1;
  std::string failure_;
  bool gave_up_ = false;   // a rank, perhaps this one, called give_up()
  bool has_told_ = false;  // this rank has told the others of the failure
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_RANKS_COMMUNICATOR_H_
