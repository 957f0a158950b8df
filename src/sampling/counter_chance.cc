// SPDX-License-Identifier: Apache-2.0
#include "sampling/counter_chance.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/elementary.h"
#include "outrider/error.h"
#include "sampling/row_kernels.h"

namespace outrider {
namespace {

using Block = std::array<std::uint32_t, 4>;

// Distinguishes Gumbel blocks from decisions with Purpose::token.
constexpr std::uint32_t kGumbelBit = 1u << 31;

// 52 random bits plus a half: (k + 1/2) 2^-52, exact in double. With 53 bits the half would not
// fit, and rounding could give 1.
double to_uniform(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t k = ((static_cast<std::uint64_t>(high) << 32) | low) >> 12;
  // As the fraction of a number in [1, 2): 1 + k 2^-52. Both steps are exact, and cheaper than
  // converting an integer to double.
  const std::uint64_t one = std::bit_cast<std::uint64_t>(1.0);
  return std::bit_cast<double>(one | k) - (1 - 0x1p-53);
}

// A Gumbel block gives two noise numbers; this is the token's.
double noise_of(TokenId token, const Block& words) {
  const bool odd = (static_cast<std::uint32_t>(token) & 1u) != 0;
  return odd ? to_uniform(words[2], words[3]) : to_uniform(words[0], words[1]);
}

// The block's index is half the token's id.
std::uint32_t noise_index(TokenId token) { return static_cast<std::uint32_t>(token) >> 1; }

// The block of a key, in the layout that the header describes.
Block block_of(std::uint64_t seed, std::int64_t position, std::uint32_t index,
               std::uint32_t purpose) {
  const auto wide = static_cast<std::uint64_t>(position);
  return philox4x32(
      {static_cast<std::uint32_t>(wide), static_cast<std::uint32_t>(wide >> 32), index, purpose},
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

[[noreturn]] void throw_no_mass() {
  throw Error("draw a token", "distribution", "a positive probability", "none");
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  // The multipliers of the paper's table 2. The keys step by fractions of the golden ratio and of
  // sqrt(3), its section 3.3.
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53u;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57u;
  constexpr std::uint32_t kStep0 = 0x9E3779B9u;
  constexpr std::uint32_t kStep1 = 0xBB67AE85u;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += kStep0;
    key[1] += kStep1;
  }
  return counter;
}

double CounterChance::uniform(const Draw& draw) const {
  const auto words = block_of(seed_, draw.position, static_cast<std::uint32_t>(draw.node),
                              static_cast<std::uint32_t>(draw.purpose));
  return to_uniform(words[0], words[1]);
}

double CounterChance::gumbel(const Draw& draw, TokenId token) const {
  const double u = noise_of(token, block_of(seed_, draw.position, noise_index(token), kGumbelBit));
  return -portable_log(-portable_log(u));
}

bool CounterChance::bernoulli(double prob, const Draw& draw) {
  if (!(prob > 0)) return false;  // NaN too
  return prob >= 1 || uniform(draw) < prob;
}

TokenId CounterChance::categorical(const Distribution& distribution, const Draw& draw) {
  if (draw.purpose == Purpose::token) return race(distribution, draw.position);
  // Inversion. If the probabilities sum to a little less than 1, u may exceed them all: then the
  // last token with a probability is drawn.
  const double u = uniform(draw);
  double below = 0;
  TokenId last = kNoToken;
  for (std::size_t i = 0; i < distribution.ids.size(); ++i) {
    const double prob = distribution.probs[i];
    if (!(prob > 0)) continue;
    last = distribution.ids[i];
    below += prob;
    if (u < below) return last;
  }
  if (last == kNoToken) throw_no_mass();
  return last;
}

void CounterChance::noise(std::int64_t position, std::span<const TokenId> ids,
                          std::span<double, kRaceTokens> out) const {
  const std::uint32_t first = noise_index(ids.front());
  const std::size_t n_blocks = noise_index(ids.back()) - first + std::size_t{1};
  if (n_blocks > ids.size()) {  // the ids are sparse: each gets its own block
    for (std::size_t i = 0; i < ids.size(); ++i) {
      out[i] = noise_of(ids[i], block_of(seed_, position, noise_index(ids[i]), kGumbelBit));
    }
    return;
  }
  std::array<double, 2 * kRaceTokens> all;  // noise of the tokens from 2 * first on
  philox_uniforms(seed_, position, first, kGumbelBit, std::span(all).first(2 * n_blocks));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    out[i] = all[static_cast<std::uint32_t>(ids[i]) - std::size_t{2} * first];
  }
}

// Gumbel-max as a race: for uniform u, -log u is exponential. The largest log(prob) - log(-log u)
// is the largest prob / -log u.
TokenId CounterChance::race(const Distribution& distribution, std::int64_t position) const {
  // -log u >= 1 - u (exact here), so a token with prob < best * (1 - u) cannot win and needs no
  // logarithm. The margin of 2^-50 covers the roundings on both sides, four of at most 2^-52 each.
  // So the shortcut does not change the result.
  constexpr double kMargin = 1 + 0x1p-50;
  double best = -1;
  TokenId winner = kNoToken;
  std::array<double, kRaceTokens> uniforms;
  for (std::size_t first = 0; first < distribution.ids.size(); first += kRaceTokens) {
    const std::size_t n = std::min(kRaceTokens, distribution.ids.size() - first);
    noise(position, std::span(distribution.ids).subspan(first, n), uniforms);
    for (std::size_t i = 0; i < n; ++i) {
      const double prob = distribution.probs[first + i];
      const double u = uniforms[i];
      if (prob * kMargin < best * (1 - u) || !(prob > 0)) continue;
      const double score = prob / -portable_log(u);
      if (score > best) {  // ids ascend, so ties go to the first
        best = score;
        winner = distribution.ids[first + i];
      }
    }
  }
  if (winner == kNoToken) throw_no_mass();
  return winner;
}

}  // namespace outrider
