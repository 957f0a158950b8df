// SPDX-License-Identifier: Apache-2.0
// The barrier at which the threads of a team wait for each other.
#ifndef OUTRIDER_TENSOR_BARRIER_H_
#define OUTRIDER_TENSOR_BARRIER_H_

#include <atomic>
#include <chrono>
#include <cstdint>

namespace outrider {

// A pass of a small model crosses about sixty barriers in a tenth of a millisecond. OpenMP's
// barrier (GCC's) makes a system call every time, to wake sleeping threads: 250 ns, against 42 for
// this one (two cores of an AMD EPYC). Here a waiting thread spins for a while and then sleeps; the
// last thread makes a system call only if a thread sleeps.
class Barrier {
 public:
  // How long a thread spins before it sleeps. Parts of a pass differ by some microseconds, and
  // waking a thread costs tens. So spinning less slows a pass down on an idle machine. Spinning
  // longer keeps processors from other threads on a busy one. (A model of 7 million parameters, two
  // cores, patience of 0, 2, 5, 10, 20, 50 and 100 us: alone 181, 154, 208, 145, 148, 145 and 147
  // us a token, medians of three; two such programs at once from 20 us on 0.4 to 8, 13 and 16 ms.)
  static constexpr std::chrono::microseconds kPatience{20};

  explicit Barrier(std::chrono::nanoseconds patience = kPatience) : patience_(patience) {}

  // Returns when n_threads have called it; what they wrote before is visible after. May be called
  // any number of times, always with the same n_threads. While it waits, a thread with patience
  // calls meanwhile() repeatedly as long as that returns true; each call should take at most some
  // tens of nanoseconds.
  template <typename Meanwhile>
  void wait(int n_threads, const Meanwhile& meanwhile) {
    // No round ends before this thread has arrived.
    const std::int32_t round = round_.load(std::memory_order_relaxed);
    if (arrive(n_threads)) return;
    // Where threads share processors, an idle thread must leave its processor at once.
    if (patience_.count() > 0) {
      while (meanwhile()) {
        if (is_over(round)) return;
      }
    }
    wait_for_end(round);
  }
  void wait(int n_threads) {
    wait(n_threads, [] { return false; });
  }

 private:
  // Whether this thread was the last one, and so has ended the round.
  bool arrive(int n_threads);
  bool is_over(std::int32_t round) const { return round_.load(std::memory_order_acquire) != round; }
  void wait_for_end(std::int32_t round);

  std::chrono::nanoseconds patience_;
  alignas(64) std::atomic<int> n_arrived_{0};
  alignas(64) std::atomic<std::int32_t> round_{0};
};

}  // namespace outrider

#endif  // OUTRIDER_TENSOR_BARRIER_H_
