// SPDX-License-Identifier: Apache-2.0
#include "base/checksum.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace outrider {
namespace {

std::vector<std::byte> counting_bytes(std::size_t n_bytes) {
  std::vector<std::byte> bytes(n_bytes);
  for (std::size_t i = 0; i < n_bytes; ++i) bytes[i] = static_cast<std::byte>(i * 37 + 5);
  return bytes;
}

// Files contain it, so its values may not change. FNV-1a of one word of zeros is basis * prime; the
// others follow by hand from the two steps of the definition.
TEST(Checksum, StaysWhatItIs) {
  constexpr std::uint64_t kBasis = 0xcbf29ce484222325ULL;
  constexpr std::uint64_t kPrime = 0x100000001b3ULL;
  const auto step = [](std::uint64_t sum, std::uint64_t word) {
    const std::uint64_t product = (sum ^ word) * kPrime;
    return product ^ (product >> 32);
  };
  EXPECT_EQ(checksum({}), step(kBasis, 0));
  const std::vector<std::byte> nine = counting_bytes(9);
  std::uint64_t word = 0;
  for (std::size_t i = 8; i-- > 0;) word = word << 8 | std::to_integer<std::uint64_t>(nine[i]);
  EXPECT_EQ(checksum(nine),
            step(step(step(kBasis, word), std::to_integer<std::uint64_t>(nine[8])), 9));
  EXPECT_EQ(checksum({}, 7), step(7, 0));
}

TEST(Checksum, EveryBitAndTheLengthCount) {
  const std::vector<std::byte> good = counting_bytes(43);
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::vector<std::byte> bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_NE(checksum(bad), checksum(good)) << bit;
  }
  // In a product without the shift, two top bits in different words would cancel.
  std::vector<std::byte> bad = good;
  bad[7] ^= std::byte{0x80};
  bad[15] ^= std::byte{0x80};
  EXPECT_NE(checksum(bad), checksum(good));
  // Zeros at the end count.
  std::set<std::uint64_t> seen;
  std::vector<std::byte> zeros;
  for (int n_bytes = 0; n_bytes < 20; ++n_bytes, zeros.push_back({})) {
    EXPECT_TRUE(seen.insert(checksum(zeros)).second) << n_bytes;
  }
}

}  // namespace
}  // namespace outrider
