// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/heartbeat.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "model/ranks/rank_commands.h"

namespace outrider {
namespace {

// The others wait for follower_seconds(), at least 1.5 time-outs: 4.5 of these periods.
constexpr double kOfTimeout = 1.0 / 3;
// For short time-outs: the others wait for at least a second.
constexpr double kMin_seconds = 0.1;

}  // namespace

Heartbeat::Heartbeat(std::shared_ptr<Communicator> ranks)
    : ranks_(std::move(ranks)),
      period_(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
          std::max(kMin_seconds, ranks_->timeout_seconds() * kOfTimeout)))),
      thread_([this] { run(); }) {}

Heartbeat::~Heartbeat() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ends_changed_.notify_all();
  thread_.join();
}

std::unique_lock<std::mutex> Heartbeat::take_turn() {
  std::unique_lock lock(mutex_);
  last_turn_ = Clock::now();
  return lock;
}

void Heartbeat::run() {
  CommandWriter writer;
  std::unique_lock lock(mutex_);
  while (!ends_) {
    const Clock::time_point due = last_turn_ + period_;
    if (Clock::now() < due) {
      ends_changed_.wait_until(lock, due);
      continue;
    }
    try {
      writer.put(RankCommand::answer);
      writer.send(*ranks_);
      ranks_->confirm();
    } catch (const std::exception& error) {
      ranks_->give_up(error.what());
      return;
    }
    last_turn_ = Clock::now();
  }
}

}  // namespace outrider
