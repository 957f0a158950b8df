// Communication between the ranks of a model. A rank is one of the processes (in tests: one of the
// threads) that hold a model together; rank 0 leads.
#ifndef OUTRIDER_MODEL_RANKS_COMMUNICATOR_H_
#define OUTRIDER_MODEL_RANKS_COMMUNICATOR_H_

#include <cstddef>
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
  // timeout_seconds: how long a rank may be silent within a pass.
  Communicator(std::unique_ptr<Transport> transport, double timeout_seconds);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return transport_->rank(); }
  int n_ranks() const { return transport_->n_ranks(); }
  bool leads() const { return rank() == 0; }

  // How long to wait for the others.
  enum class Patience {
    pass,     // timeout_seconds
    loading,  // an hour: ranks load their parts at different speeds
    endless,  // for rank 0's next command
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
  // Exchanges a text of every rank: returns all, in the order of ranks, on every rank.
  std::vector<std::string> exchange_texts(std::string_view mine, Patience patience);

  // Called before an exchange: the others' next or current call throws Error with this message. So
  // does this rank's.
  void give_up(std::string_view why) noexcept;
  // For a rank that is done: waits a few seconds at most for the others.
  void finish() noexcept;

  // The message of the calls' error; empty: none yet. Thread-safe.
  std::string failure() const;
  // Whether rank 0 is lost, so that no other rank reports it.
  bool has_lost_leader() const;

 private:
  void gather(std::span<const std::byte> mine, std::span<const std::size_t> n_bytes, std::byte* all,
              bool to_all, Patience patience);
  void exchange(const Exchange& exchange, Patience patience);
  // Keeps the first failure only.
  void note_failure(int culprit, std::string what, bool gave_up);

  std::unique_ptr<Transport> transport_;
  double timeout_seconds_;
  std::vector<Exchange::Piece> pieces_;  // (n_ranks)

  mutable std::mutex mutex_;  // guards the members after it
  int culprit_ = -1;
  std::string failure_;
  bool gave_up_ = false;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_RANKS_COMMUNICATOR_H_
