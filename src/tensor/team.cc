#include "tensor/team.h"

#include <omp.h>

#include <algorithm>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace outrider {
namespace {

// The default float environment for as long as it lives, what was there before afterwards.
class DefaultFloats {
 public:
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;
#if defined(__x86_64__)
  // 0x1f80: all exceptions masked, round to nearest, neither flush to zero nor subnormals read as
  // zero: what a process starts with, but libraries built with fast-math change it.
  DefaultFloats() : before_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~DefaultFloats() { _mm_setcsr(before_); }

 private:
  unsigned before_;
#else
  DefaultFloats() {}
  ~DefaultFloats() {}
#endif
};

}  // namespace

void Team::barrier() const {
#pragma omp barrier
}

void run_team(int n_threads, const std::function<void(const Team&)>& body) {
#pragma omp parallel num_threads(n_threads)
  {
    const DefaultFloats floats;
    // Asked, not assumed: OpenMP may give fewer threads than it is asked for.
    body(Team(omp_get_thread_num(), omp_get_num_threads()));
  }
}

int default_threads() { return std::min(omp_get_num_procs(), omp_get_max_threads()); }

}  // namespace outrider
