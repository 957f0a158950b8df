// SPDX-License-Identifier: Apache-2.0
#include "base/memory/pooled_memory.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/memory/big_memory.h"

namespace outrider {
namespace {

constexpr std::size_t kLine = 64;

constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Only the filled part of a model's last block is touched, so its size costs addresses, not memory.
constexpr std::size_t kBlockBytes = 16 * kHugePage;

struct Block {
  explicit Block(std::size_t size) : memory(allocate_big_memory(size)), n_bytes(size) {}
  std::size_t n_left() const { return n_bytes - n_taken; }
  BigMemory memory;
  std::size_t n_bytes;
  std::size_t n_taken = 0;
};

// The current block. Its pieces own it.
struct Pool {
  std::mutex mutex;
  std::weak_ptr<Block> filling;
};

Pool& pool() {
  static Pool pool;
  return pool;
}

}  // namespace

PooledMemory allocate_pooled_memory(std::size_t n_bytes) {
  const std::size_t needed = (n_bytes + kLine - 1) / kLine * kLine;
  const std::lock_guard lock(pool().mutex);
  std::shared_ptr<Block> block = pool().filling.lock();
  if (block == nullptr || block->n_left() < needed) {
    const std::size_t whole = (needed + kHugePage - 1) / kHugePage * kHugePage;
    const auto fresh = std::make_shared<Block>(std::max(kBlockBytes, whole));
    // The next piece goes into the block with more free memory.
    if (block == nullptr || block->n_left() < fresh->n_bytes - needed) pool().filling = fresh;
    block = fresh;
  }
  std::byte* piece = block->memory.get() + block->n_taken;
  block->n_taken += needed;
  return {std::move(block), piece};
}

}  // namespace outrider
