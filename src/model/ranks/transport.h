// SPDX-License-Identifier: Apache-2.0
// The interface that moves bytes between ranks: threads of one process, or MPI (src/mpi). All other
// communication builds on it (communicator.h).
//
// An implementation may be a module that is loaded at run time. So nothing here throws, and nothing
// needs a symbol of the library.
#ifndef OUTRIDER_MODEL_RANKS_TRANSPORT_H_
#define OUTRIDER_MODEL_RANKS_TRANSPORT_H_

#include <atomic>
#include <cstddef>

namespace outrider {

// One exchange of a rank: it sends the same bytes to several peers, and receives from several.
struct Exchange {
  enum class Peers { none, first, others };  // first: rank 0, for the other ranks
  struct Piece {
    std::byte* at = nullptr;
    std::size_t n_bytes = 0;
  };
  Peers to = Peers::none;
  const std::byte* sent = nullptr;  // (n_sent)
  std::size_t n_sent = 0;
  Peers from = Peers::none;
  // (n_ranks) where to write the bytes of each rank, and their exact number; the own entry is
  // unused.
  const Piece* received = nullptr;
};

// How long an exchange waits for silent peers.
struct WaitLimit {
  double max_seconds = 0;  // 0: forever
  // Set (for example by a signal handler) to end the wait: stopped_seconds after it was found to be
  // set, or after the exchange began if that is later. Null: never.
  const std::atomic<bool>* stop = nullptr;
  double stopped_seconds = 0;
};

// One rank's end. Every rank makes the same exchanges in the same order. Not thread-safe, but not
// bound to one thread.
class Transport {
 public:
  enum class Status {
    done,
    silent,    // a peer sent nothing for too long
    stopped,   // the same, and WaitLimit::stop was set
    given_up,  // a peer said that it cannot go on, which rank is the cause, and why
    broken,    // a message did not fit, or the network failed
  };

  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int n_ranks() const = 0;

  // No piece may be larger than max_bytes(). After any status but `done`, only give_up() and
  // finish() may be called. Until give_up() has returned, the buffers of the exchange must stay in
  // place.
  virtual Status exchange(const Exchange& exchange, const WaitLimit& limit) noexcept = 0;
  virtual std::size_t max_bytes() const = 0;

  // The rank that the last status concerns, or -1; and a description. Valid until the next call.
  // After given_up: as the peer reported it.
  virtual int culprit() const = 0;
  virtual const char* reason() const = 0;

  // Tells all peers, in whatever call they wait, that this rank cannot continue, which rank is the
  // cause (this one or another), and why. Waits for a moment at most.
  virtual void give_up(int culprit, const char* why) noexcept = 0;
  // Ends this rank's part: rank 0 waits up to max_seconds for the others, and the others for rank
  // 0. If a peer's loss would keep the program from ending, the program is ended.
  virtual void finish(double max_seconds) noexcept = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_RANKS_TRANSPORT_H_
