// Memory for many pieces of a few kilobytes to many megabytes that stay: packed weights.
#ifndef OUTRIDER_BASE_POOLED_MEMORY_H_
#define OUTRIDER_BASE_POOLED_MEMORY_H_

#include <cstddef>
#include <memory>

namespace outrider {

// A piece of a block that many pieces share. The block is freed with its last piece.
using PooledMemory = std::shared_ptr<std::byte>;

// n_bytes, at least 1, aligned to a cache line, that nobody has written to. They lie in huge pages
// whatever their number (base/big_memory.h): pieces stand side by side in blocks of many such
// pages. (Alone, a matrix below 8 MB had pages of 4 KB: 1,536 x 8,960 weights of Q4_K came at 24
// GB/s from memory, 11 MB of Q6_K beside them at 30.) Throws std::bad_alloc. Thread-safe.
PooledMemory allocate_pooled_memory(std::size_t n_bytes);

}  // namespace outrider

#endif  // OUTRIDER_BASE_POOLED_MEMORY_H_
