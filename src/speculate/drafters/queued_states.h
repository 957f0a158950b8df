// What a head that reads the target's states has of one text.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_QUEUED_STATES_H_
#define OUTRIDER_SPECULATE_DRAFTERS_QUEUED_STATES_H_

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "model/language_model.h"

namespace outrider {

// A sequence of the head's, and the states of the places behind its kept ones, which wait until a
// draft needs them. Not thread-safe.
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
  // Places whose states are known, run or not.
  int n_known() const { return sequence_->n_kept() + n_queued(); }

  // Room for n states at the queue's end, to be written before anything else is called.
  std::span<float> add(int n) {
    const std::size_t first = queued_.size();
    queued_.resize(first + static_cast<std::size_t>(n) * dim_);
    return std::span<float>(queued_).subspan(first);
  }
  // The first n of the queue have been run.
  void drop(int n) {
    const auto end = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(n) * dim_);
    queued_.erase(queued_.begin(), queued_.begin() + end);
  }
  void clear() { queued_.clear(); }

  // Of a text that begins with this one's first n places: those that were run, and then the states
  // of those that were not. Where a window has lost the place, some are missing.
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

#endif  // OUTRIDER_SPECULATE_DRAFTERS_QUEUED_STATES_H_
