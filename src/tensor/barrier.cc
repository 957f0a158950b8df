#include "tensor/barrier.h"

namespace outrider {
namespace {

// Looks at a time between looks at the clock, which take as long as one or two.
constexpr int kLooks = 32;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

void Barrier::wait(int n_threads) {
  using Clock = std::chrono::steady_clock;
  // No round ends before this thread has arrived.
  const std::int32_t round = round_.load(std::memory_order_relaxed);
  if (n_arrived_.fetch_add(1, std::memory_order_acq_rel) == n_threads - 1) {
    n_arrived_.store(0, std::memory_order_relaxed);  // published by round_
    // Sequentially consistent, so that it is seen before notify_all asks who sleeps.
    round_.fetch_add(1);
    round_.notify_all();
    return;
  }
  const auto is_over = [&] { return round_.load(std::memory_order_acquire) != round; };
  for (int look = 0; look < kLooks; ++look) {
    if (is_over()) return;
    pause();
  }
  for (const auto until = Clock::now() + patience_; Clock::now() < until;) {
    for (int look = 0; look < kLooks; ++look) {
      if (is_over()) return;
      pause();
    }
  }
  round_.wait(round, std::memory_order_acquire);
}

}  // namespace outrider
