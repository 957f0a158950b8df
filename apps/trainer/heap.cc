// SPDX-License-Identifier: Apache-2.0
#include "apps/trainer/heap.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

namespace outrider::cli {
namespace {

// 0 if the system does not report it.
std::int64_t resident_bytes() {
  std::int64_t n_pages = 0;
  std::int64_t n_resident = 0;
  std::ifstream("/proc/self/statm") >> n_pages >> n_resident;
  return n_resident * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

void keep_heap() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

void HeapTrimmer::after_step() {
  const std::int64_t resident = resident_bytes();
  if (limit_ == 0 || has_trimmed_) limit_ = std::max(limit_, 2 * resident);
  has_trimmed_ = resident > limit_;
#ifdef __GLIBC__
  if (has_trimmed_) ::malloc_trim(0);
#endif
}

}  // namespace outrider::cli
