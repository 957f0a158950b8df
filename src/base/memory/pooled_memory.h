// SPDX-License-Identifier: Apache-2.0
// Long-lived memory for many pieces of a few kilobytes to many megabytes: packed weights, the KV
// cache.
#ifndef OUTRIDER_BASE_MEMORY_POOLED_MEMORY_H_
#define OUTRIDER_BASE_MEMORY_POOLED_MEMORY_H_

#include <cstddef>
#include <memory>

namespace outrider {

// A piece of a block that many pieces share. The block is freed with its last piece.
using PooledMemory = std::shared_ptr<std::byte>;

// Allocates n_bytes >= 1 of untouched memory, aligned to a cache line. It is in huge pages for any
// size (base/memory/big_memory.h): pieces are adjacent in blocks of many such pages. Throws
// std::bad_alloc. Thread-safe.
//
// Allocated separately, a piece below 8 MB would have pages of 4 KB, and a larger one at its end.
// In a virtual machine after a day of use, 8 MB of Q4_K weights were read at 10 to 24 GB/s from
// such pages, and at 28 GB/s from huge ones. 11 MB of Q6_K with an end of 0.9 MB in small pages
// were read at 12 to 25, and at 28.
PooledMemory allocate_pooled_memory(std::size_t n_bytes);

}  // namespace outrider

#endif  // OUTRIDER_BASE_MEMORY_POOLED_MEMORY_H_
