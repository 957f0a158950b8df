// A number that tells whether bytes are still those that were written: against disks, transfers and
// mistakes, not against people.
#ifndef OUTRIDER_BASE_CHECKSUM_H_
#define OUTRIDER_BASE_CHECKSUM_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace outrider {

// Goes on from `start`, the checksum of what stands before. One word of eight bytes a step, in the
// manner of FNV-1a (its offset basis and prime), the last filled up with zeros and followed by the
// length. Every step is a bijection of what it goes on from, so bytes that differ within one word
// only never have the same checksum; the shift lets high bits reach the low ones, which a product
// alone does not. On little-endian machines.
inline std::uint64_t checksum(std::span<const std::byte> bytes,
                              std::uint64_t start = 0xcbf29ce484222325ULL) {
  constexpr std::uint64_t kPrime = 0x100000001b3ULL;
  std::uint64_t sum = start;
  const auto add = [&sum](std::uint64_t word) {
    sum = (sum ^ word) * kPrime;
    sum ^= sum >> 32;
  };
  const std::uint64_t n_bytes = bytes.size();
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t n_taken = std::min(bytes.size(), sizeof(word));
    std::memcpy(&word, bytes.data(), n_taken);
    add(word);
    bytes = bytes.subspan(n_taken);
  }
  add(n_bytes);
  return sum;
}

}  // namespace outrider

#endif  // OUTRIDER_BASE_CHECKSUM_H_
