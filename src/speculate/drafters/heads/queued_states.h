// SPDX-License-Identifier: Apache-2.0
// The state of one text for a head that reads the target's states.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_HEADS_QUEUED_STATES_H_
#define OUTRIDER_SPECULATE_DRAFTERS_HEADS_QUEUED_STATES_H_

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "model/language_model.h"

namespace outrider {

// A sequence of the head, and the states of the positions after its kept ones, queued until a draft
// needs them. Not thread-safe.
class QueuedStates {
 public:
  QueuedStates() = default;
  // dim: floats of a state.
  QueuedStates(std::unique_ptr<Sequence> sequence, std::size_t dim)
      : sequence_(std::move(sequence)), dim_(dim) {}

  Sequence& sequence() const { return *sequence_; }
  // (n_queued, dim)
  std::span<const float> queued() const { return queued_; }
  std::span<const float> first(int n) const {
    return queued().first(static_cast<std::size_t>(n) * dim_);
  }
  int n_queued() const { return static_cast<int>(queued_.size() / dim_); }
  // Positions whose states are known, run or not.
  int n_known() const { return sequence_->n_kept() + n_queued(); }

  // Appends space for n states to the queue; the caller must write them before any other call.
  std::span<float> add(int n) {
    const std::size_t first = queued_.size();
    queued_.resize(first + static_cast<std::size_t>(n) * dim_);
    return std::span<float>(queued_).subspan(first);
  }
  // Removes the first n states of the queue, which have been run.
  void drop(int n) {
    const auto end = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(n) * dim_);
    queued_.erase(queued_.begin(), queued_.begin() + end);
  }
  void clear() { queued_.clear(); }

  // A copy for a text that shares the first n positions: those that were run, and the states of
  // those that were not. If a window has dropped the position, some are missing.
  QueuedStates fork(std::size_t n) const {
    QueuedStates its(sequence_->fork(), dim_);
    const auto n_kept = static_cast<std::size_t>(sequence_->n_kept());
    if (n > n_kept) {
      const std::span<const float> taken = first(static_cast<int>(n - n_kept));
      its.queued_.assign(taken.begin(), taken.end());
    } else {
      its.sequence_->rewind(static_cast<int>(n));
    }
    return its;
  }

 private:
  std::unique_ptr<Sequence> sequence_;
  std::size_t dim_ = 1;
  std::vector<float> queued_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_HEADS_QUEUED_STATES_H_
