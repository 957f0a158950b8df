// SPDX-License-Identifier: Apache-2.0
#include "base/memory/big_memory.h"

#include <cstdint>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace outrider {

// The remainder after the last whole huge page also gets one if it fills at least half: from 9 MB
// on, rounding adds at most a ninth.
BigMemory allocate_big_memory(std::size_t n_bytes) {
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const bool big = n_bytes >= 4 * kHugePage;
  const std::size_t alignment = big ? kHugePage : kLine;
  const std::size_t whole = (n_bytes + alignment - 1) / alignment * alignment;
  BigMemory memory(static_cast<std::byte*>(std::aligned_alloc(alignment, whole)));
  if (memory == nullptr) throw std::bad_alloc();
#if defined(__linux__)
  // Only advice: if refused, the memory is slower.
  if (big) {
    madvise(memory.get(), (n_bytes + kHugePage / 2) / kHugePage * kHugePage, MADV_HUGEPAGE);
  }
#endif
  return memory;
}

void give_back_memory([[maybe_unused]] std::byte* bytes, [[maybe_unused]] std::size_t n_bytes) {
#if defined(__linux__)
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes);
  const std::uintptr_t first = (begin + page - 1) / page * page;
  const std::uintptr_t end = (begin + n_bytes) / page * page;
  if (first < end) madvise(bytes + (first - begin), end - first, MADV_DONTNEED);
#endif
}

}  // namespace outrider
