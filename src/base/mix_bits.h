// SPDX-License-Identifier: Apache-2.0
// A 64-bit hash.
#ifndef OUTRIDER_BASE_MIX_BITS_H_
#define OUTRIDER_BASE_MIX_BITS_H_

#include <cstdint>

namespace outrider {

// SplitMix64's increment.
inline constexpr std::uint64_t kMixIncrement = 0x9e3779b97f4a7c15ULL;

// SplitMix64's output function (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number
// generators"): a bijection in which each bit of x affects every bit of the result.
inline std::uint64_t mix_bits(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace outrider

#endif  // OUTRIDER_BASE_MIX_BITS_H_
