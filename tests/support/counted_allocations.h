// SPDX-License-Identifier: Apache-2.0
// Counts the heap allocations of a test program on all its threads. It replaces the C library's
// allocation functions for the whole program, so operator new, the OpenMP runtime and other
// libraries are counted, too. Include it in one file of a program.
//
// The replacements call glibc's own functions. Under a sanitizer, which has replacements too, and
// with another C library nothing is counted; kCountsAllocations is then false.
#ifndef OUTRIDER_TESTS_SUPPORT_COUNTED_ALLOCATIONS_H_
#define OUTRIDER_TESTS_SUPPORT_COUNTED_ALLOCATIONS_H_

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

#if defined(__has_feature)
#define OUTRIDER_HAS_FEATURE(name) __has_feature(name)
#else
#define OUTRIDER_HAS_FEATURE(name) 0
#endif
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !OUTRIDER_HAS_FEATURE(address_sanitizer) && !OUTRIDER_HAS_FEATURE(thread_sanitizer)
#define OUTRIDER_COUNTS_ALLOCATIONS 1
#else
#define OUTRIDER_COUNTS_ALLOCATIONS 0
#endif

namespace outrider::test {

inline constexpr bool kCountsAllocations = OUTRIDER_COUNTS_ALLOCATIONS != 0;
inline constexpr const char* kWhyNotCounted =
    "allocations are counted with glibc and without sanitizers only";

inline std::atomic<long> n_allocations{0};

}  // namespace outrider::test

#if OUTRIDER_COUNTS_ALLOCATIONS

extern "C" {

void* __libc_malloc(std::size_t size) noexcept;
void* __libc_calloc(std::size_t n, std::size_t size) noexcept;
void* __libc_realloc(void* memory, std::size_t size) noexcept;
void* __libc_memalign(std::size_t alignment, std::size_t size) noexcept;

void* malloc(std::size_t size) noexcept {
  ++outrider::test::n_allocations;
  return __libc_malloc(size);
}
void* calloc(std::size_t n, std::size_t size) noexcept {
  ++outrider::test::n_allocations;
  return __libc_calloc(n, size);
}
void* realloc(void* memory, std::size_t size) noexcept {
  ++outrider::test::n_allocations;
  return __libc_realloc(memory, size);
}
void* memalign(std::size_t alignment, std::size_t size) noexcept {
  ++outrider::test::n_allocations;
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  ++outrider::test::n_allocations;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) noexcept {
  ++outrider::test::n_allocations;
  void* got = __libc_memalign(alignment, size);
  if (got == nullptr) return ENOMEM;
  *memory = got;
  return 0;
}

}  // extern "C"

#endif

#endif  // OUTRIDER_TESTS_SUPPORT_COUNTED_ALLOCATIONS_H_
