// Where the threads of a team wait for one another.
#ifndef OUTRIDER_TENSOR_BARRIER_H_
#define OUTRIDER_TENSOR_BARRIER_H_

#include <atomic>
#include <chrono>
#include <cstdint>

namespace outrider {

// A pass of a small model crosses some sixty barriers in a tenth of a millisecond. OpenMP's (GCC's)
// makes a system call at every one, to wake whoever may sleep: 250 ns where this one takes 42 (two
// cores of an AMD EPYC). Here a thread that waits looks for a while and then sleeps; who comes last
// calls the system only if somebody does.
class Barrier {
 public:
  // How long a thread looks before it sleeps. Parts of a pass differ by some microseconds, and
  // being woken costs tens: who looks for less slows down where nobody else wants the processors.
  // Who looks for longer keeps them from whoever is waited for, where somebody does. (A model of 7
  // million parameters, two cores, patience of 0, 2, 5, 10, 20, 50 and 100 us: alone 181, 154, 208,
  // 145, 148, 145 and 147 us a token, medians of three; two such programs at once from 20 us on
  // 0.4 to 8, 13 and 16 ms.)
  static constexpr std::chrono::microseconds kPatience{20};

  explicit Barrier(std::chrono::nanoseconds patience = kPatience) : patience_(patience) {}

  // Returns when n_threads have called it; what they wrote before is seen after. Any number of
  // times, always with the same n_threads.
  void wait(int n_threads);

 private:
  std::chrono::nanoseconds patience_;
  alignas(64) std::atomic<int> n_arrived_{0};
  alignas(64) std::atomic<std::int32_t> round_{0};
};

}  // namespace outrider

#endif  // OUTRIDER_TENSOR_BARRIER_H_
