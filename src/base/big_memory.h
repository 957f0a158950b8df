// Memory that is streamed through: aligned to cache lines and, where it fills several, in huge
// pages.
#ifndef OUTRIDER_BASE_BIG_MEMORY_H_
#define OUTRIDER_BASE_BIG_MEMORY_H_

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace outrider {

struct FreeBigMemory {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};
using BigMemory = std::unique_ptr<std::byte, FreeBigMemory>;

// n_bytes, at least 1, that nobody has written to. From 8 MB on they ask for huge pages: streaming
// through those of 4 KB costs an address translation every 64 lines. Throws std::bad_alloc.
BigMemory allocate_big_memory(std::size_t n_bytes);

// Of n_bytes that allocate_big_memory gave, or a part of them: the whole system pages among them
// take no memory until they are written to again. What they held is lost. A wish, as huge pages
// are: where the system refuses it, the bytes stay.
void give_back_memory(std::byte* bytes, std::size_t n_bytes);

}  // namespace outrider

#endif  // OUTRIDER_BASE_BIG_MEMORY_H_
