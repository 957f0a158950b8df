// SPDX-License-Identifier: Apache-2.0
// The product's Chance: counter-based random numbers (Philox4x32-10; Salmon, Moraes, Dror, Shaw,
// "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
//
// Keys. The cipher's key is the seed. Its counter's four words are
//   position, low half | position, high half | index | purpose, and bit 31 for Gumbel noise
// where index is the node, or for Gumbel noise half the token id. Every field of a key has separate
// bits and keeps all of its bits. So different (seed, position, node, purpose) never share a
// counter, and neither do different (seed, position, token / 2). Different counters give different
// blocks, because the cipher with a fixed key is a bijection. A block's four words make two
// numbers. A decision uses the first; Gumbel noise uses the first for even tokens and the second
// for odd ones. Purpose::token has no node: its noise depends on (seed, position, token) alone.
#ifndef OUTRIDER_SAMPLING_COUNTER_CHANCE_H_
#define OUTRIDER_SAMPLING_COUNTER_CHANCE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sampling/chance.h"

namespace outrider {

// One block of Philox4x32 with ten rounds.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

// A pure function of (seed, draw): stateless, thread-safe, the same on every machine. categorical
// throws Error if the distribution has no positive entry.
class CounterChance : public Chance {
 public:
  explicit CounterChance(std::uint64_t seed) : seed_(seed) {}
  bool bernoulli(double prob, const Draw& draw) override;
  TokenId categorical(const Distribution& distribution, const Draw& draw) override;

  // Uniform on the odd multiples of 2^-53 below 1: never 0 or 1, and the mean is exactly 1/2.
  double uniform(const Draw& draw) const;
  // Standard Gumbel noise of one token at the draw's position, -log(-log u). categorical with
  // Purpose::token takes the token of largest log(prob) + gumbel, the lowest id among equals. It
  // compares prob / -log u, which has the same order and costs one logarithm instead of three.
  double gumbel(const Draw& draw, TokenId token) const;

 private:
  // Tokens whose noise is computed at a time: 3 KiB, which stay in the L1 cache.
  static constexpr std::size_t kRaceTokens = 128;
  // The uniform numbers of the Gumbel noise of 1 to kRaceTokens tokens, ids ascending.
  void noise(std::int64_t position, std::span<const TokenId> ids,
             std::span<double, kRaceTokens> out) const;
  TokenId race(const Distribution& distribution, std::int64_t position) const;

  std::uint64_t seed_;
};

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_COUNTER_CHANCE_H_
