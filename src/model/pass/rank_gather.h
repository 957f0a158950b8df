// What the ranks of a model have of a pass's rows each, brought together.
#ifndef OUTRIDER_MODEL_PASS_RANK_GATHER_H_
#define OUTRIDER_MODEL_PASS_RANK_GATHER_H_

#include <cstddef>
#include <exception>
#include <span>
#include <vector>

#include "model/ranks/communicator.h"

namespace outrider {

// One thread of the team calls columns() or slots(); the others may look at what came behind a
// barrier. After a failure calls do nothing: a team's threads must not throw.
class RankGather {
 public:
  // ranks: null where the lists of the pass have no gathers.
  explicit RankGather(Communicator* ranks) : ranks_(ranks) {}

  Communicator& ranks() const { return *ranks_; }
  // Room for n_rows rows of so many columns, those that come here; 0: this rank receives none.
  // Allocates only while passes grow.
  void make_room(int n_rows, int width);
  std::size_t n_room() const { return received_.size(); }  // floats, for tests

  // mine: this rank's columns of n_rows rows, (n_rows, parts[rank]). They come to `row`, (width),
  // where n_rows is 1, else to received(). Without to_all: on rank 0 alone.
  void columns(const float* mine, int n_rows, std::span<const int> parts, float* row, bool to_all);
  // After columns() of several rows: of all ranks, (n_rows, parts[rank]) one behind the other.
  const float* received() const { return received_.data(); }

  // Of slots (width), one behind the other from `first` on: rank r has n_slots[r] of them, in the
  // order of ranks, each its own in place. All come.
  void slots(float* first, int width, std::span<const int> n_slots);
  // (n_ranks), for who calls slots().
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
