// SPDX-License-Identifier: Apache-2.0
#include "tensor/barrier.h"

namespace outrider {
namespace {

// Polls between readings of the clock, which take as long as one or two polls.
constexpr int kLooks = 32;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

bool Barrier::arrive(int n_threads) {
  if (n_arrived_.fetch_add(1, std::memory_order_acq_rel) != n_threads - 1) return false;
  n_arrived_.store(0, std::memory_order_relaxed);  // published by round_
  // Sequentially consistent, so that it is visible before notify_all looks for sleeping threads.
  round_.fetch_add(1);
  round_.notify_all();
  return true;
}

void Barrier::wait_for_end(std::int32_t round) {
  using Clock = std::chrono::steady_clock;
  for (int look = 0; look < kLooks; ++look) {
    if (is_over(round)) return;
    pause();
  }
  for (const auto until = Clock::now() + patience_; Clock::now() < until;) {
    for (int look = 0; look < kLooks; ++look) {
      if (is_over(round)) return;
      pause();
    }
  }
  round_.wait(round, std::memory_order_acquire);
}

}  // namespace outrider
