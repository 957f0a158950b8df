// The product's Chance: counter-based random numbers (Philox4x32-10; Salmon, Moraes, Dror, Shaw,
// "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
#ifndef OUTRIDER_SAMPLING_COUNTER_CHANCE_H_
#define OUTRIDER_SAMPLING_COUNTER_CHANCE_H_

#include <array>
#include <cstdint>

#include "sampling/chance.h"

namespace outrider {

// One block of Philox4x32 with ten rounds.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

// A pure function of (seed, draw): stateless, thread-safe, the same on every machine.
class CounterChance : public Chance {
 public:
  explicit CounterChance(std::uint64_t seed) : seed_(seed) {}
  bool bernoulli(double prob, const Draw& draw) override;
  TokenId categorical(const Distribution& distribution, const Draw& draw) override;

  // Uniform in (0, 1), 53 bits, never 0 or 1.
  double uniform(const Draw& draw) const;
  // Standard Gumbel noise of one token at one position.
  double gumbel(const Draw& draw, TokenId token) const;

 private:
  std::uint64_t seed_;
};

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_COUNTER_CHANCE_H_
