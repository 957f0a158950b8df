#include "sampling/counter_chance.h"

#include <cstddef>

#include "base/elementary.h"
#include "outrider/error.h"

namespace outrider {
namespace {

// Tells Gumbel blocks from decisions that carry Purpose::token.
constexpr std::uint32_t kGumbelBit = 1u << 31;

// 52 random bits and a half: (k + 1/2) 2^-52, exact in double. With 53 bits the half would not fit,
// and rounding would reach 1.
double to_uniform(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t k = ((static_cast<std::uint64_t>(high) << 32) | low) >> 12;
  return (static_cast<double>(k) + 0.5) * 0x1p-52;
}

[[noreturn]] void throw_no_mass() {
  throw Error("draw a token", "distribution", "a positive probability", "none");
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  // The multipliers of the paper's table 2; the keys step by the fractions of the golden ratio and
  // of sqrt(3), its section 3.3.
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

std::array<std::uint32_t, 4> CounterChance::block(std::int64_t position, std::uint32_t index,
                                                  std::uint32_t purpose) const {
  const auto wide = static_cast<std::uint64_t>(position);
  return philox4x32(
      {static_cast<std::uint32_t>(wide), static_cast<std::uint32_t>(wide >> 32), index, purpose},
      {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
}

double CounterChance::uniform(const Draw& draw) const {
  const auto words = block(draw.position, static_cast<std::uint32_t>(draw.node),
                           static_cast<std::uint32_t>(draw.purpose));
  return to_uniform(words[0], words[1]);
}

double CounterChance::gumbel(const Draw& draw, TokenId token) const {
  const auto id = static_cast<std::uint32_t>(token);
  const auto words = block(draw.position, id >> 1, kGumbelBit);
  const double u = (id & 1u) ? to_uniform(words[2], words[3]) : to_uniform(words[0], words[1]);
  return -portable_log(-portable_log(u));
}

bool CounterChance::bernoulli(double prob, const Draw& draw) {
  if (!(prob > 0)) return false;  // NaN too
  return prob >= 1 || uniform(draw) < prob;
}

TokenId CounterChance::categorical(const Distribution& distribution, const Draw& draw) {
  if (draw.purpose == Purpose::token) return race(distribution, draw.position);
  // Inversion. Probabilities that sum to a little less than 1 may leave u beyond them all: then it
  // is the last token that has any.
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

// Gumbel-max as a race: with u uniform, -log u is exponential, and the largest log(prob) -
// log(-log u) is the largest prob / -log u.
TokenId CounterChance::race(const Distribution& distribution, std::int64_t position) const {
  // -log u >= 1 - u (exact here), so a token with prob < best * (1 - u) cannot win and its
  // logarithm need not be taken. The margin of 2^-50 covers the roundings on both sides, four of at
  // most 2^-52 each; it makes the short cut invisible in the result.
  constexpr double kMargin = 1 + 0x1p-50;
  double best = -1;
  TokenId winner = kNoToken;
  std::array<std::uint32_t, 4> words{};
  std::int64_t words_of = -1;  // the half id whose block `words` is
  for (std::size_t i = 0; i < distribution.ids.size(); ++i) {
    const double prob = distribution.probs[i];
    if (!(prob > 0)) continue;
    const auto id = static_cast<std::uint32_t>(distribution.ids[i]);
    if (words_of != static_cast<std::int64_t>(id >> 1)) {
      words_of = static_cast<std::int64_t>(id >> 1);
      words = block(position, id >> 1, kGumbelBit);
    }
    const double u = (id & 1u) ? to_uniform(words[2], words[3]) : to_uniform(words[0], words[1]);
    if (prob * kMargin < best * (1 - u)) continue;
    const double score = prob / -portable_log(u);
    if (score > best) {  // ids ascend: of equals the first stays
      best = score;
      winner = distribution.ids[i];
    }
  }
  if (winner == kNoToken) throw_no_mass();
  return winner;
}

}  // namespace outrider
