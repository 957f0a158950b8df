#include "base/pooled_memory.h"

#include <mutex>
#include <utility>

#include "base/big_memory.h"

namespace outrider {
namespace {

constexpr std::size_t kLine = 64;

// Sixteen huge pages. The last block of a model is touched only as far as it is filled, so its size
// costs addresses, not memory.
constexpr std::size_t kBlockBytes = std::size_t{32} << 20;

// From a quarter of a block on, a piece has memory of its own: what it would leave unfilled of a
// block before it is more than what rounding to huge pages costs.
constexpr std::size_t kOwnBytes = kBlockBytes / 4;

struct Block {
  explicit Block(std::size_t n_bytes) : memory(allocate_big_memory(n_bytes)) {}
  BigMemory memory;
  std::size_t n_taken = 0;
};

// The block that is being filled. Its pieces own it.
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
  if (n_bytes >= kOwnBytes) return allocate_big_memory(n_bytes);
  const std::size_t n_taken = (n_bytes + kLine - 1) / kLine * kLine;
  const std::lock_guard lock(pool().mutex);
  std::shared_ptr<Block> block = pool().filling.lock();
  if (block == nullptr || kBlockBytes - block->n_taken < n_taken) {
    block = std::make_shared<Block>(kBlockBytes);
    pool().filling = block;
  }
  std::byte* piece = block->memory.get() + block->n_taken;
  block->n_taken += n_taken;
  return {std::move(block), piece};
}

}  // namespace outrider
