// SPDX-License-Identifier: Apache-2.0
// Memory for streaming: aligned to cache lines and, if large enough, in huge pages.
#ifndef OUTRIDER_BASE_MEMORY_BIG_MEMORY_H_
#define OUTRIDER_BASE_MEMORY_BIG_MEMORY_H_

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace outrider {

struct FreeBigMemory {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};
using BigMemory = std::unique_ptr<std::byte, FreeBigMemory>;

// Allocates n_bytes >= 1 of untouched memory. From 8 MB on it requests huge pages: with pages of 4
// KB, streaming costs an address translation every 64 lines. Throws std::bad_alloc.
BigMemory allocate_big_memory(std::size_t n_bytes);

// Returns the whole system pages within n_bytes from allocate_big_memory, or a part of them, to the
// system until they are written again. Their contents are lost. A request, as for huge pages: if
// the system refuses, the bytes stay.
void give_back_memory(std::byte* bytes, std::size_t n_bytes);

}  // namespace outrider

#endif  // OUTRIDER_BASE_MEMORY_BIG_MEMORY_H_
