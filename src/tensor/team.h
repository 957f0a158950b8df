// SPDX-License-Identifier: Apache-2.0
// The threads of one pass. A pass is written once, as a function that every thread of the team runs
// (single program, multiple data). Each op does this thread's share; the author places barriers
// between an op and the ops that read what all threads wrote.
#ifndef OUTRIDER_TENSOR_TEAM_H_
#define OUTRIDER_TENSOR_TEAM_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "tensor/barrier.h"

namespace outrider {

struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Progress counters of the last few dynamically divided loops of a team.
class WorkCounters {
 public:
  // The next part of [n_taken, n) in the team's loop number `loop` (all threads count alike): half
  // of an even share of what is left, but at least `min_size`. Empty once nothing is left.
  Range next(std::int64_t loop, std::int64_t n_taken, std::int64_t n, std::int64_t min_size,
             int n_threads);

 private:
  // A loop's number and, in the low bits, how much of it is taken. A thread leaves a loop only when
  // all of it is taken, so a slot reused by a later loop means that nothing is left.
  static constexpr int kTakenBits = 32;
  struct alignas(64) Slot {
    std::atomic<std::int64_t> taken{0};
  };
  std::array<Slot, 8> slots_;
};

// State shared by the threads of a team.
struct TeamShared {
  WorkCounters counters;
  Barrier barrier;
};

// One thread's view of its team. Valid only inside run_team.
class Team {
 public:
  Team(int index, int size, TeamShared* shared) : index_(index), size_(size), shared_(shared) {}
  int index() const { return index_; }
  int size() const { return size_; }

  // This thread's share of [0, n): contiguous, in order of index; sizes differ by at most one.
  Range share(std::int64_t n) const { return {n * index_ / size_, n * (index_ + 1) / size_}; }

  // Divides [0, n), n below 2^31, dynamically into parts of at least `min_size` (or even shares, if
  // those are smaller). Each thread first gets its first_part; after that, each free thread takes
  // the next part. So no thread waits long for a slow one (other programs may use its core). Calls
  // work(part) for each part of this thread. All threads must call it, in the same order as other
  // such loops.
  template <typename Work>
  void parallel_for_dynamic(std::int64_t n, std::int64_t min_size, const Work& work) const {
    ++n_loops_;
    Range part = first_part(n, min_size);
    if (part.begin < part.end) work(part);
    if (size_ == 1) return;
    const std::int64_t n_taken = std::min(n, size_ * first_size(n, min_size));
    while (true) {
      part = shared_->counters.next(n_loops_, n_taken, n, min_size, size_);
      if (part.begin >= part.end) return;
      work(part);
    }
  }

  // The first part of such a loop for this thread, which is fixed and known in advance.
  Range first_part(std::int64_t n, std::int64_t min_size) const {
    const std::int64_t size = first_size(n, min_size);
    return {std::min(n, size * index_), std::min(n, size * (index_ + 1))};
  }

  // Waits for all threads; what they wrote before is visible after. All threads must call it. A
  // waiting thread prefetches what it will read next (set_prefetch).
  void barrier() const {
    if (size_ > 1) shared_->barrier.wait(size_, [this] { return prefetch_some(); });
  }

  // Announces n_bytes at `from`, constant data that this thread reads from memory after one of the
  // next barriers. Otherwise memory would be idle while threads do the little work between two
  // products.
  void set_prefetch(const std::byte* from, std::size_t n_bytes) const {
    if (from + n_bytes == ahead_end_) return;  // announced before; its prefetch goes on
    ahead_ = from;
    ahead_end_ = from + n_bytes;
  }

 private:
  // Three quarters of an even share, at least `min_size`. If one of two threads has 0.6 of the
  // other's speed, neither waits; and there are fewer parts, each of which begins before its
  // weights are prefetched. (Qwen2.5-Coder 1.5B, Q4_K_M, two threads, medians of four turns against
  // half of an even share: one row 0.98 of the time, four 0.95, eight 0.94.)
  std::int64_t first_size(std::int64_t n, std::int64_t min_size) const {
    if (size_ == 1) return n;
    return std::min(std::max(3 * n / (4 * size_), min_size), (n + size_ - 1) / size_);
  }

  // Prefetches some more lines of what this thread reads next. False: there are none.
  bool prefetch_some() const;

  int index_;
  int size_;
  TeamShared* shared_;
  mutable std::int64_t n_loops_ = 0;          // this thread's own count
  mutable const std::byte* ahead_ = nullptr;  // announced and not prefetched yet
  mutable const std::byte* ahead_end_ = nullptr;
};

// Runs body on n_threads threads (this one included) and waits. Every thread runs with the default
// float environment (MXCSR: round to nearest, subnormals kept); the caller's is restored
// afterwards. body must not throw.
void run_team(int n_threads, const std::function<void(const Team&)>& body);

// The default number of threads: the processors that this process may use, or OMP_NUM_THREADS if
// that is fewer.
int default_threads();

}  // namespace outrider

#endif  // OUTRIDER_TENSOR_TEAM_H_
