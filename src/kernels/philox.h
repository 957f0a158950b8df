// SPDX-License-Identifier: Apache-2.0
// Blocks of Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011), one in each 64-bit lane of four
// vectors, and their uniform numbers: those of sampling/counter_chance.h, bit for bit
// (philox_test.cc compares them with a plain implementation).
#ifndef OUTRIDER_KERNELS_PHILOX_H_
#define OUTRIDER_KERNELS_PHILOX_H_

#include <cstddef>
#include <cstdint>

#include "kernels/double_functions.h"
#include "kernels/vectors/float_vector.h"

namespace outrider::kernels {
namespace {

// Writes 2 n_blocks numbers in (0, 1), two for each block. The key is the seed; block i's counter
// is (position, first + i modulo 2^32, purpose). A word of a counter is in the low half of each
// lane; V multiplies low halves to whole lanes.
template <FloatVector V>
void philox_uniforms(std::uint64_t seed, std::int64_t position, std::uint32_t first,
                     std::uint32_t purpose, int n_blocks, double* out) {
  using D = Doubles<V::kDoubles>;
  using Bits = typename D::Bits;
  using Value = typename D::Value;
  constexpr int kLanes = V::kDoubles;
  // Vectors in parallel, since each round of one waits for its products. (1, 2, 4 and 8 on a Zen 4,
  // 4,096 numbers: 5.5, 4.8, 4.3 and 4.5 us with AVX-512, 7.2, 5.9, 5.5 and 6.0 with AVX2.)
  constexpr int kVectors = 4;
  constexpr int kTogether = kVectors * kLanes;
  // The paper's table 2, and the increments of the keys (section 3.3).
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53u;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57u;
  constexpr std::uint32_t kStep0 = 0x9E3779B9u;
  constexpr std::uint32_t kStep1 = 0xBB67AE85u;
  constexpr std::uint64_t kLow = 0xFFFFFFFFu;
  constexpr std::uint64_t kOneBits = 0x3ff0000000000000u;
  const auto wide = static_cast<std::uint64_t>(position);
  Bits lanes = {};
  for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = static_cast<std::uint64_t>(lane);
  for (int begin = 0; begin < n_blocks; begin += kTogether) {
    Bits word0[kVectors], word1[kVectors], word2[kVectors], word3[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      word0[v] = Bits{} + (wide & kLow);
      word1[v] = Bits{} + (wide >> 32);
      word2[v] = (lanes + (first + static_cast<std::uint64_t>(begin + v * kLanes))) & kLow;
      word3[v] = Bits{} + purpose;
    }
    auto key0 = static_cast<std::uint32_t>(seed);
    auto key1 = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      for (int v = 0; v < kVectors; ++v) {
        const Bits product0 = V::multiply_low_halves(word0[v], Bits{} + kMultiplier0);
        const Bits product1 = V::multiply_low_halves(word2[v], Bits{} + kMultiplier1);
        word0[v] = (product1 >> 32) ^ word1[v] ^ key0;
        word1[v] = product1 & kLow;
        word2[v] = (product0 >> 32) ^ word3[v] ^ key1;
        word3[v] = product0 & kLow;
      }
      key0 += kStep0;
      key1 += kStep1;
    }
    // (k + 1/2) 2^-52 with the upper 52 bits k: as the fraction of a number from 1 to 2.
    double pairs[kTogether][2];
    for (int v = 0; v < kVectors; ++v) {
      const Bits even = (((word0[v] << 32) | word1[v]) >> 12) | kOneBits;
      const Bits odd = (((word2[v] << 32) | word3[v]) >> 12) | kOneBits;
      const Value evens = __builtin_bit_cast(Value, even) - (1 - 0x1p-53);
      const Value odds = __builtin_bit_cast(Value, odd) - (1 - 0x1p-53);
      for (int lane = 0; lane < kLanes; ++lane) {
        pairs[v * kLanes + lane][0] = evens[lane];
        pairs[v * kLanes + lane][1] = odds[lane];
      }
    }
    const int n = n_blocks - begin < kTogether ? n_blocks - begin : kTogether;
    __builtin_memcpy(out + std::size_t{2} * static_cast<std::size_t>(begin), pairs,
                     static_cast<std::size_t>(n) * sizeof pairs[0]);
  }
}

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_PHILOX_H_
