// SPDX-License-Identifier: Apache-2.0
// A checksum that detects changed bytes: against errors of disks and transfers and mistakes, not
// against attacks.
#ifndef OUTRIDER_BASE_CHECKSUM_H_
#define OUTRIDER_BASE_CHECKSUM_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace outrider {

// Continues from `start`, the checksum of the preceding bytes. It is similar to FNV-1a (with its
// offset basis and prime) over words of eight bytes; the last word is padded with zeros and
// followed by the length. Every step is a bijection of its input state. So bytes that differ within
// only one word never have the same checksum. The shift propagates high bits to low ones, which a
// product alone does not. For little-endian machines.
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
