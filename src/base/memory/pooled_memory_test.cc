// SPDX-License-Identifier: Apache-2.0
#include "base/memory/pooled_memory.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace outrider {
namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20;

TEST(PooledMemory, PiecesAreAlignedAndDoNotOverlap) {
  struct Piece {
    PooledMemory memory;
    std::size_t n_bytes;
  };
  std::vector<Piece> pieces;
  // Several blocks in total, one of them for a piece larger than the others.
  for (const std::size_t n_bytes :
       {std::size_t{1}, std::size_t{63}, std::size_t{65}, kMegabyte + 1, 9 * kMegabyte + 5,
        20 * kMegabyte, 9 * kMegabyte, 32 * kMegabyte, 41 * kMegabyte - 3, 5 * kMegabyte}) {
    pieces.push_back({allocate_pooled_memory(n_bytes), n_bytes});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pieces.back().memory.get()) % 64, 0u) << n_bytes;
    std::memset(pieces.back().memory.get(), static_cast<int>(pieces.size()), n_bytes);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::byte* bytes = pieces[i].memory.get();
    const std::vector<std::byte> expected(pieces[i].n_bytes, static_cast<std::byte>(i + 1));
    EXPECT_EQ(std::memcmp(bytes, expected.data(), expected.size()), 0) << i;
  }
}

TEST(PooledMemory, SmallPiecesStandSideBySide) {
  const PooledMemory first = allocate_pooled_memory(100);
  const PooledMemory second = allocate_pooled_memory(100);
  EXPECT_EQ(second.get() - first.get(), 128);
}

TEST(PooledMemory, APieceOutlivesTheOthersOfItsBlock) {
  PooledMemory first = allocate_pooled_memory(100);
  const PooledMemory second = allocate_pooled_memory(100);
  std::memset(second.get(), 7, 100);
  first.reset();
  EXPECT_EQ(second.get()[99], std::byte{7});
  EXPECT_EQ(second.use_count(), 1);
}

}  // namespace
}  // namespace outrider
