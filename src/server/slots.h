// SPDX-License-Identifier: Apache-2.0
// llama-server's slots: numbers by which clients name ended texts in order to save them.
#ifndef OUTRIDER_SERVER_SLOTS_H_
#define OUTRIDER_SERVER_SLOTS_H_

#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

#include "outrider/batch.h"

namespace outrider::server {

// Each slot has the last text put there, running or ended. Thread-safe.
class Slots {
 public:
  explicit Slots(std::size_t n_slots) : texts_(n_slots) {}
  int size() const { return static_cast<int>(texts_.size()); }

  void put(int slot, RequestId text) {
    const std::lock_guard lock(mutex_);
    texts_[static_cast<std::size_t>(slot)] = text;
  }
  // Empty: nothing was put there, or it was cleared.
  std::optional<RequestId> at(int slot) const {
    const std::lock_guard lock(mutex_);
    return texts_[static_cast<std::size_t>(slot)];
  }
  void clear(int slot) {
    const std::lock_guard lock(mutex_);
    texts_[static_cast<std::size_t>(slot)].reset();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::optional<RequestId>> texts_;
};

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_SLOTS_H_
