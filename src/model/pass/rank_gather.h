// SPDX-License-Identifier: Apache-2.0
// Gathers the ranks' parts of a pass's rows.
#ifndef OUTRIDER_MODEL_PASS_RANK_GATHER_H_
#define OUTRIDER_MODEL_PASS_RANK_GATHER_H_

#include <cstddef>
#include <exception>
#include <span>
#include <vector>

#include "model/ranks/communicator.h"

namespace outrider {

// One thread of the team calls columns() or slots(); the others may read the results after a
// barrier. After a failure calls do nothing: a team's threads must not throw.
class RankGather {
 public:
  // ranks: null if the pass's lists have no gathers.
  explicit RankGather(Communicator* ranks) : ranks_(ranks) {}

  Communicator& ranks() const { return *ranks_; }
  // Allocates a buffer for n_rows rows of `width` columns, those that are received; 0: this rank
  // receives none. Allocates only if passes grow.
  void resize(int n_rows, int width);
  std::size_t n_room() const { return received_.size(); }  // floats, for tests

  // mine: this rank's columns of n_rows rows, (n_rows, parts[rank]). They are received in `row`,
  // (width), if n_rows is 1, otherwise in received(). Without to_all: on rank 0 only.
  void columns(const float* mine, int n_rows, std::span<const int> parts, float* row, bool to_all);
  // After columns() with several rows: each rank's (n_rows, parts[rank]), one after the other.
  const float* received() const { return received_.data(); }

  // Gathers slots (width), contiguous from `first` on: rank r has n_slots[r] of them, in the order
  // of ranks, and its own are in place. Every rank gets all.
  void slots(float* first, int width, std::span<const int> n_slots);
  // (n_ranks), a buffer for callers of slots().
  std::vector<int>& slot_counts() { return slot_counts_; }

  bool has_failed() const { return failure_ != nullptr; }
  void throw_if_failed() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  Communicator* ranks_;
  std::vector<float> received_;
  std::vector<int> slot_counts_;
  std::vector<std::size_t> n_bytes_;  // (n_ranks)
  std::exception_ptr failure_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_RANK_GATHER_H_
