// SPDX-License-Identifier: Apache-2.0
// Checks between passes, too, that the other ranks are alive: rank 0 detects a lost rank without a
// request, and the others detect the loss of rank 0.
#ifndef OUTRIDER_MODEL_RANKS_HEARTBEAT_H_
#define OUTRIDER_MODEL_RANKS_HEARTBEAT_H_

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "model/ranks/communicator.h"

namespace outrider {

// On rank 0. During its life, a separate thread sends RankCommand::answer to the others whenever a
// third of the time-out has passed without a turn. If one of them does not answer in time,
// Communicator::failure() reports it, and the others are told.
class Heartbeat {
 public:
  explicit Heartbeat(std::shared_ptr<Communicator> ranks);
  // Waits for a pending answer, as long as a pass would.
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // A thread that communicates with the others holds this, from a command to the end of the work
  // that it starts. Any thread.
  [[nodiscard]] std::unique_lock<std::mutex> take_turn();

 private:
  using Clock = std::chrono::steady_clock;

  void run();

  std::shared_ptr<Communicator> ranks_;
  Clock::duration period_;
  std::mutex mutex_;  // guards all members after it, and every use of ranks_
  std::condition_variable ends_changed_;
  bool ends_ = false;
  Clock::time_point last_turn_ = Clock::now();
  std::thread thread_;  // started last
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_RANKS_HEARTBEAT_H_
