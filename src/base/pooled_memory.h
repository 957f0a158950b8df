// Memory for many pieces of a few kilobytes to many megabytes that stay: packed weights, the KV
// cache.
#ifndef OUTRIDER_BASE_POOLED_MEMORY_H_
#define OUTRIDER_BASE_POOLED_MEMORY_H_

#include <cstddef>
#include <memory>

namespace outrider {

// A piece of a block that many pieces share. The block is freed with its last piece.
using PooledMemory = std::shared_ptr<std::byte>;

// n_bytes, at least 1, aligned to a cache line, that nobody has written to. They lie in huge pages
// whatever their number (base/big_memory.h): pieces stand side by side in blocks of many such
// pages. Throws std::bad_alloc. Thread-safe.
//
// Alone, a piece below 8 MB had pages of 4 KB, and a larger one at its end: in a virtual machine up
// for a day, 8 MB of weights in Q4_K came at 10 to 24 GB/s from such pages and come at 28 from huge
// ones, 11 MB of Q6_K with an end of 0.9 MB in small pages at 12 to 25 and at 28.
PooledMemory allocate_pooled_memory(std::size_t n_bytes);

}  // namespace outrider

#endif  // OUTRIDER_BASE_POOLED_MEMORY_H_
