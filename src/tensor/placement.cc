#include "tensor/placement.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#if defined(__linux__)
#include <sched.h>
#endif

namespace outrider {
namespace {

bool user_places_threads() {
  constexpr const char* kVariables[] = {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY",
                                        "KMP_AFFINITY"};
  return std::any_of(std::begin(kVariables), std::end(kVariables), [](const char* name) {
    return std::getenv(name) != nullptr;  // NOLINT(concurrency-mt-unsafe): nothing here sets it
  });
}

#if defined(__linux__)

// More processors than a set of the usual size holds make an empty list.
std::vector<int> usable_processors() {
  cpu_set_t usable;
  std::vector<int> processors;
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return processors;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &usable)) processors.push_back(processor);
  }
  return processors;
}

void move_to(int processor) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(processor, &only);
  (void)sched_setaffinity(0, sizeof only, &only);
}

#endif

}  // namespace

const std::vector<int>& placement(int n_threads) {
  static const std::vector<int> left_to_system;
#if defined(__linux__)
  static const std::vector<int> processors =
      user_places_threads() ? std::vector<int>{} : usable_processors();
  if (n_threads > 1 && processors.size() == static_cast<std::size_t>(n_threads)) return processors;
#endif
  (void)n_threads;
  return left_to_system;
}

void settle(const std::vector<int>& placement, int index) {
  if (placement.empty()) return;
#if defined(__linux__)
  const int processor = placement[static_cast<std::size_t>(index)];
  if (index > 0) {
    thread_local int settled_on = -1;
    if (settled_on == processor) return;
    move_to(processor);
    settled_on = processor;
  } else if (sched_getcpu() != processor) {
    cpu_set_t before;
    if (sched_getaffinity(0, sizeof before, &before) != 0) return;
    move_to(processor);
    (void)sched_setaffinity(0, sizeof before, &before);
  }
#else
  (void)index;
#endif
}

}  // namespace outrider
