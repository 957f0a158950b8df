// The threads of one pass. A pass is written once, as a function that every thread of the team runs
// (single program, multiple data): each op does this thread's share, and the author places barriers
// between an op and those that read what all threads wrote.
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

// How far each of the last few deals of a team has come.
class Deals {
 public:
  // The next part of [n_taken, n) in the team's deal number `deal` (all threads count alike): half
  // of an even share of what is left, but at least `least`. Empty once nothing is left.
  Range next(std::int64_t deal, std::int64_t n_taken, std::int64_t n, std::int64_t least,
             int n_threads);

 private:
  // A deal's number and, in the low bits, how much of it is dealt. A thread leaves a deal only when
  // all of it is dealt, so a slot that a later deal has taken says that nothing is left.
  static constexpr int kDealtBits = 32;
  struct alignas(64) Slot {
    std::atomic<std::int64_t> dealt{0};
  };
  std::array<Slot, 8> slots_;
};

// What the threads of a team share.
struct TeamRoom {
  Deals deals;
  Barrier barrier;
};

// One thread's view of the team it runs in. Valid only inside run_team.
class Team {
 public:
  Team(int index, int size, TeamRoom* room) : index_(index), size_(size), room_(room) {}
  int index() const { return index_; }
  int size() const { return size_; }

  // This thread's share of [0, n): contiguous, in order of index, sizes differing by one at most.
  Range share(std::int64_t n) const { return {n * index_ / size_, n * (index_ + 1) / size_}; }

  // Deals [0, n), n below 2^31, out in parts of `least` or more (or even shares, where those are
  // smaller): first to each thread its first_part, then whoever comes next gets the next. Where
  // threads are not equally fast (their cores are other programs' too) none waits long for another.
  // Calls work(part) for each part that falls to this thread. All threads must call it, in the same
  // order as other deals.
  template <typename Work>
  void deal(std::int64_t n, std::int64_t least, const Work& work) const {
    ++n_deals_;
    Range part = first_part(n, least);
    if (part.begin < part.end) work(part);
    if (size_ == 1) return;
    const std::int64_t n_taken = std::min(n, size_ * first_size(n, least));
    while (true) {
      part = room_->deals.next(n_deals_, n_taken, n, least, size_);
      if (part.begin >= part.end) return;
      work(part);
    }
  }

  // What such a deal begins with for this thread, whoever comes first; so it is known before.
  Range first_part(std::int64_t n, std::int64_t least) const {
    const std::int64_t size = first_size(n, least);
    return {std::min(n, size * index_), std::min(n, size * (index_ + 1))};
  }

  // Waits for all threads; what they wrote before is seen after. All threads must call it. Whoever
  // waits calls for what it will read next (reads_next) into its caches.
  void barrier() const {
    if (size_ > 1) room_->barrier.wait(size_, [this] { return call_ahead(); });
  }

  // The n_bytes at `from`, which never change and which this thread reads from memory behind one of
  // the next barriers. While some threads work on what little there is between two products, the
  // memory would stand idle.
  void reads_next(const std::byte* from, std::size_t n_bytes) const {
    if (from + n_bytes == ahead_end_) return;  // said before: what is called for is
    ahead_ = from;
    ahead_end_ = from + n_bytes;
  }

 private:
  // Three quarters of an even share, at least `least`: of two threads one at 0.6 of the other's
  // speed holds nobody up, and there are fewer parts, each of which begins before its weights are
  // called for. (Qwen2.5-Coder 1.5B, Q4_K_M, two threads, medians of four turns beside half of an
  // even share: one row 0.98 of the time, four 0.95, eight 0.94.)
  std::int64_t first_size(std::int64_t n, std::int64_t least) const {
    if (size_ == 1) return n;
    return std::min(std::max(3 * n / (4 * size_), least), (n + size_ - 1) / size_);
  }

  // Some lines more of what this thread reads next. False: there are none.
  bool call_ahead() const;

  int index_;
  int size_;
  TeamRoom* room_;
  mutable std::int64_t n_deals_ = 0;          // this thread's own count
  mutable const std::byte* ahead_ = nullptr;  // what it reads next and has not called for
  mutable const std::byte* ahead_end_ = nullptr;
};

// Runs body on n_threads threads (this one included) and waits. Every thread runs with the default
// float environment (MXCSR: round to nearest, subnormals kept), the caller's own restored
// afterwards. body must not throw.
void run_team(int n_threads, const std::function<void(const Team&)>& body);

// The number of threads to use where nobody says: the processors this process may run on, or
// OMP_NUM_THREADS if that is fewer.
int default_threads();

}  // namespace outrider

#endif  // OUTRIDER_TENSOR_TEAM_H_
