// SPDX-License-Identifier: Apache-2.0
// Compares random numbers of every table with Philox4x32-10 as in its paper.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/dispatch.h"

namespace outrider::kernels {
namespace {

using Block = std::array<std::uint32_t, 4>;

Block philox(Block counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

double uniform(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t k = ((std::uint64_t{high} << 32) | low) >> 12;
  return (static_cast<double>(k) + 0.5) * 0x1p-52;
}

TEST(Philox, TheReferenceGivesTheAuthorsVectors) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// Every number of blocks around the vectors' length, high halves of all arguments, and an index
// that wraps around.
TEST(Philox, EveryTableGivesItsNumbers) {
  for (const KernelTable* table : compiled_tables()) {
    if (!is_supported(*table)) continue;
    for (int n = 0; n < 70; ++n) {
      const std::uint64_t seed = 0x0123456789abcdefULL * static_cast<std::uint64_t>(n);
      const std::int64_t position = n % 2 == 0 ? n : -(std::int64_t{1} << 40) - n;
      const std::uint32_t first = n % 3 == 0 ? 0xfffffff0U : 77U * static_cast<std::uint32_t>(n);
      const std::uint32_t purpose = n % 5 == 0 ? 1U << 31 : 3;
      const auto size = static_cast<std::size_t>(n);
      std::vector<double> got(2 * size + 1, 7.0);
      table->philox_uniforms(seed, position, first, purpose, n, got.data());
      EXPECT_EQ(got.back(), 7.0) << table->name;
      for (std::size_t i = 0; i < size; ++i) {
        const auto wide = static_cast<std::uint64_t>(position);
        const Block words =
            philox({static_cast<std::uint32_t>(wide), static_cast<std::uint32_t>(wide >> 32),
                    first + static_cast<std::uint32_t>(i), purpose},
                   {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
        ASSERT_EQ(got[2 * i], uniform(words[0], words[1])) << table->name << " " << n << " " << i;
        ASSERT_EQ(got[2 * i + 1], uniform(words[2], words[3])) << table->name << " " << n;
      }
    }
  }
}

}  // namespace
}  // namespace outrider::kernels
