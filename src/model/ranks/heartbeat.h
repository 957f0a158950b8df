// SPDX-License-Identifier: Apache-2.0
// Whether the other ranks are there is asked between passes, too: rank 0 finds a lost one without a
// request, and the others find that rank 0 is lost.
#ifndef OUTRIDER_MODEL_RANKS_HEARTBEAT_H_
#define OUTRIDER_MODEL_RANKS_HEARTBEAT_H_

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "model/ranks/communicator.h"

namespace outrider {

// Rank 0's. While it lives, RankCommand::answer goes to the others whenever a third of the time-out
// has passed without a turn, from a thread of its own. Where one of them does not answer in time,
// Communicator::failure() says so, and the others hear it.
class Heartbeat {
 public:
  explicit Heartbeat(std::shared_ptr<Communicator> ranks);
  // Waits for an answer that is due, as long as a pass would.
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // Whoever talks to the others holds this meanwhile, from a command to the end of what it starts.
  // Any thread.
  [[nodiscard]] std::unique_lock<std::mutex> take_turn();

 private:
  using Clock = std::chrono::steady_clock;

  void run();

  std::shared_ptr<Communicator> ranks_;
  Clock::duration period_;
  std::mutex mutex_;  // of all that follows, and of every use of ranks_
  std::condition_variable ends_changed_;
  bool ends_ = false;
  Clock::time_point last_turn_ = Clock::now();
  std::thread thread_;  // starts last
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_RANKS_HEARTBEAT_H_
