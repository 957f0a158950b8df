#include "base/big_memory.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace outrider
