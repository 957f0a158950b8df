// SPDX-License-Identifier: Apache-2.0
#include "base/memory/big_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace outrider {
namespace {

TEST(BigMemory, IsAlignedAndAllOfItMayBeWritten) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  for (const std::size_t n_bytes :
       {std::size_t{1}, std::size_t{64}, 4 * kHugePage - 1, 4 * kHugePage, 4 * kHugePage + 1}) {
    const BigMemory memory = allocate_big_memory(n_bytes);
    ASSERT_NE(memory, nullptr);
    const auto address = reinterpret_cast<std::uintptr_t>(memory.get());
    EXPECT_EQ(address % (n_bytes < 4 * kHugePage ? 64 : kHugePage), 0u) << n_bytes;
    std::memset(memory.get(), 0x5A, n_bytes);
    EXPECT_EQ(memory.get()[n_bytes - 1], std::byte{0x5A});
  }
}

#if defined(__linux__)
// The system zeroes memory that was freed, which shows that it was.
TEST(BigMemory, GivesBackWholePagesAndNothingElse) {
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  constexpr std::size_t kFirst = 1000;
  constexpr std::size_t kEnd = kBytes - 1000;
  constexpr std::size_t kLargestPage = std::size_t{64} << 10;
  const BigMemory memory = allocate_big_memory(kBytes);
  std::byte* const bytes = memory.get();
  std::memset(bytes, 7, kBytes);
  give_back_memory(bytes + kFirst, kEnd - kFirst);
  const auto count = [&](std::size_t begin, std::size_t end, int value) {
    return static_cast<std::size_t>(std::count(bytes + begin, bytes + end, std::byte(value)));
  };
  EXPECT_EQ(count(0, kFirst, 7), kFirst);
  EXPECT_EQ(count(kEnd, kBytes, 7), kBytes - kEnd);
  EXPECT_EQ(count(kLargestPage, kBytes - kLargestPage, 0), kBytes - 2 * kLargestPage);
  std::memset(bytes, 8, kBytes);
  EXPECT_EQ(count(0, kBytes, 8), kBytes);
  give_back_memory(bytes + 10, 20);  // less than a page
  EXPECT_EQ(count(0, kBytes, 8), kBytes);
}
#endif

}  // namespace
}  // namespace outrider
