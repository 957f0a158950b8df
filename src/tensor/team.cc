// SPDX-License-Identifier: Apache-2.0
#include "tensor/team.h"

#include <omp.h>
#include <strings.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace outrider {
namespace {

// Sets the default float environment during its lifetime and restores the previous one.
class DefaultFloats {
 public:
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;
#if defined(__x86_64__)
  // 0x1f80: all exceptions masked, round to nearest, no flushing of subnormals. This is a process's
  // default, but libraries built with fast-math change it.
  DefaultFloats() : before_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~DefaultFloats() { _mm_setcsr(before_); }

 private:
  unsigned before_;
#elif defined(__aarch64__)
  // 0: the same in FPCR.
  DefaultFloats() {
    __asm__ volatile("mrs %0, fpcr" : "=r"(before_));
    set(0);
  }
  ~DefaultFloats() { set(before_); }

 private:
  static void set(std::uint64_t state) { __asm__ volatile("msr fpcr, %0" ::"r"(state)); }

  std::uint64_t before_ = 0;
#else
  DefaultFloats() {}
  ~DefaultFloats() {}
#endif
};

// No polling if threads share processors, since a polling thread would keep out the one that it
// waits for; and none if the user asks for that, by OpenMP's variable.
std::chrono::nanoseconds patience_of(int n_threads) {
  static const int n_processors = omp_get_num_procs();
  static const bool is_passive = [] {
    const char* policy = std::getenv("OMP_WAIT_POLICY");
    return policy != nullptr && ::strcasecmp(policy, "passive") == 0;
  }();
  if (is_passive || n_threads > n_processors) return std::chrono::nanoseconds(0);
  return Barrier::kPatience;
}

}  // namespace

Range WorkCounters::next(std::int64_t loop, std::int64_t n_taken, std::int64_t n,
                         std::int64_t min_size, int n_threads) {
  std::atomic<std::int64_t>& taken = slots_[static_cast<std::size_t>(loop) % slots_.size()].taken;
  std::int64_t seen = taken.load(std::memory_order_relaxed);
  while (true) {
    const std::int64_t whose = seen >> kTakenBits;
    if (whose > loop) return {};
    const std::int64_t begin = whose == loop ? seen - (loop << kTakenBits) : n_taken;
    if (begin >= n) return {};
    const std::int64_t part = std::max(min_size, (n - begin) / (2 * n_threads));
    const std::int64_t end = std::min(n, begin + part);
    if (taken.compare_exchange_weak(seen, (loop << kTakenBits) + end, std::memory_order_relaxed)) {
      return {begin, end};
    }
  }
}

bool Team::prefetch_some() const {
  constexpr int kLines = 4;  // between two checks whether all have arrived
  constexpr std::size_t kLineBytes = 64;
  for (int line = 0; line < kLines; ++line) {
    if (ahead_ >= ahead_end_) return false;
    __builtin_prefetch(ahead_, 0, 2);  // into L2: kernels/products.h says why
    ahead_ += kLineBytes;
  }
  return true;
}

void run_team(int n_threads, const std::function<void(const Team&)>& body) {
  TeamShared shared{.counters = {}, .barrier = Barrier(patience_of(n_threads))};
  // GCC's OpenMP allocates a new team of one for every such region, and keeps larger ones.
  if (n_threads == 1) {
    const DefaultFloats floats;
    body(Team(0, 1, &shared));
    return;
  }
#pragma omp parallel num_threads(n_threads)
  {
    const DefaultFloats floats;
    // Queried, since OpenMP may provide fewer threads than requested.
    body(Team(omp_get_thread_num(), omp_get_num_threads(), &shared));
  }
}

int default_threads() { return std::min(omp_get_num_procs(), omp_get_max_threads()); }

}  // namespace outrider
