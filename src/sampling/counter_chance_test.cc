// SPDX-License-Identifier: Apache-2.0
// Statistical checks on fixed seeds, so they always pass or always fail. Each compares a standard
// normal statistic with kMaxZ = 5.33, which a correct generator exceeds with probability 1e-7
// (two-sided). There are some three hundred statistics, so a correct generator had one chance in
// 30,000 to fail when the seeds were chosen. The faults to catch (numbers shared between keys, a
// lost bit, a missing token) move the statistics by tens at these sample sizes; the last test shows
// that.
#include "sampling/counter_chance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/elementary.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr double kMaxZ = 5.33;

// Chi-square as a standard normal (Wilson and Hilferty 1931; good to about 0.1 in z this far out).
double chi_square_z(const std::vector<double>& counts, const std::vector<double>& expected) {
  double chi_square = 0;
  double freedom = -1;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (expected[i] == 0) {
      EXPECT_EQ(counts[i], 0) << "an impossible outcome, " << i;
      continue;
    }
    EXPECT_GE(expected[i], 10) << "too few expected for chi-square";
    chi_square += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
    freedom += 1;
  }
  const double spread = 2 / (9 * freedom);
  return (std::cbrt(chi_square / freedom) - (1 - spread)) / std::sqrt(spread);
}

struct Verdict {
  double correlation_z = 0;
  double joint_z = 0;  // chi-square of a 16 by 16 table: dependence that is no correlation
};

Verdict independence(const std::vector<std::pair<double, double>>& pairs) {
  const auto n = static_cast<double>(pairs.size());
  double product = 0;
  std::vector<double> counts(256, 0.0);
  for (const auto& [a, b] : pairs) {
    product += (a - 0.5) * (b - 0.5);
    counts[static_cast<std::size_t>(a * 16) * 16 + static_cast<std::size_t>(b * 16)] += 1;
  }
  // Each product has mean 0 and variance (1/12)^2.
  return {product * 12 / std::sqrt(n), chi_square_z(counts, std::vector<double>(256, n / 256))};
}

void expect_independent(const std::vector<std::pair<double, double>>& pairs, const char* what) {
  const Verdict verdict = independence(pairs);
  EXPECT_LT(std::abs(verdict.correlation_z), kMaxZ) << what;
  EXPECT_LT(std::abs(verdict.joint_z), kMaxZ) << what;
}

// The uniform u from which Gumbel noise is made.
double noise(const CounterChance& chance, std::int64_t position, TokenId token) {
  const double gumbel = chance.gumbel({position, 0, Purpose::token}, token);
  return std::min(std::exp(-std::exp(-gumbel)), std::nextafter(1.0, 0.0));
}

constexpr Purpose kPurposes[] = {Purpose::token,    Purpose::draft, Purpose::accept,
                                 Purpose::residual, Purpose::bonus, Purpose::block};

// The known answers published with the authors' library (Random123, kat_vectors).
TEST(Philox, KnownAnswers) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// The numbers themselves, for reproducing a seed elsewhere: keys in the header's layout, and the
// first known answer above.
TEST(CounterChance, NumbersAreThoseOfTheHeader) {
  EXPECT_EQ(CounterChance(0).uniform({0, 0, Purpose::token}),
            (static_cast<double>(0x6627e8d5e169c) + 0.5) * 0x1p-52);
  constexpr std::uint64_t kSeed = 0x0123456789abcdef;
  constexpr std::int64_t kPosition = 0x1122334455667788;
  for (const TokenId token : {0, 1, 42, 43, 2'147'483'646, 2'147'483'647}) {
    const auto words =
        philox4x32({0x55667788, 0x11223344, static_cast<std::uint32_t>(token) / 2, 0x80000000},
                   {0x89abcdef, 0x01234567});
    const auto upper = static_cast<std::uint64_t>(words[token % 2 == 0 ? 0 : 2]);
    const std::uint64_t k = (upper << 20) | (words[token % 2 == 0 ? 1 : 3] >> 12);
    const double u = (static_cast<double>(k) + 0.5) * 0x1p-52;
    EXPECT_EQ(CounterChance(kSeed).gumbel({kPosition, 5, Purpose::token}, token),
              -portable_log(-portable_log(u)))
        << token;
  }
}

TEST(CounterChance, IsAFunctionOfItsKey) {
  const CounterChance a(42), b(42), c(43);
  const Draw draw{17, 3, Purpose::accept};
  EXPECT_EQ(a.uniform(draw), b.uniform(draw));
  EXPECT_NE(a.uniform(draw), c.uniform(draw));
  EXPECT_NE(a.uniform(draw), CounterChance(42 + (std::uint64_t{1} << 32)).uniform(draw));
  EXPECT_NE(a.uniform({1, 0, Purpose::draft}),
            a.uniform({1 + (std::int64_t{1} << 32), 0, Purpose::draft}));
  // Plain sampling does not depend on nodes.
  EXPECT_EQ(a.gumbel({5, 0, Purpose::token}, 9), a.gumbel({5, 77, Purpose::accept}, 9));
}

// Neighbouring keys give different numbers: 120,000 of 2^52 would collide by chance with
// probability 2e-6.
TEST(CounterChance, KeysDoNotCollide) {
  const CounterChance chance(1);
  std::unordered_set<double> seen;
  std::size_t n = 0;
  for (std::int64_t position = 0; position < 200; ++position) {
    for (int node = 0; node < 100; ++node) {
      for (Purpose purpose : kPurposes) {
        seen.insert(chance.uniform({position, node, purpose}));
        ++n;
      }
    }
  }
  EXPECT_EQ(seen.size(), n);
}

// Kolmogorov and Smirnov: P(sqrt(n) D > 2.9) is about 2 exp(-2 2.9^2) = 1e-7.
TEST(CounterChance, UniformsAreUniform) {
  constexpr int kDraws = 200'000;
  const CounterChance chance(2);
  std::vector<std::vector<double>> samples(4);
  for (int i = 0; i < kDraws; ++i) {
    samples[0].push_back(chance.uniform({i, 0, Purpose::accept}));
    samples[1].push_back(chance.uniform({100, i, Purpose::draft}));
    samples[2].push_back(noise(chance, i, 0));
    samples[3].push_back(noise(chance, 100, i));
  }
  for (std::vector<double>& sample : samples) {
    std::sort(sample.begin(), sample.end());
    double distance = 0;
    for (int i = 0; i < kDraws; ++i) {
      const double u = sample[static_cast<std::size_t>(i)];
      ASSERT_GT(u, 0);
      ASSERT_LT(u, 1);
      distance = std::max(
          {distance, u - static_cast<double>(i) / kDraws, static_cast<double>(i + 1) / kDraws - u});
    }
    EXPECT_LT(std::sqrt(static_cast<double>(kDraws)) * distance, 2.9);
  }
}

// All 52 bits are used, and each is a fair coin.
TEST(CounterChance, EveryBitIsFair) {
  constexpr int kDraws = 100'000;
  const CounterChance chance(3);
  std::vector<double> ones(53, 0.0);
  for (int i = 0; i < kDraws; ++i) {
    const double scaled = chance.uniform({i, 1, Purpose::residual}) * 0x1p53;
    const auto bits = static_cast<std::uint64_t>(scaled);
    ASSERT_EQ(static_cast<double>(bits), scaled);
    for (std::size_t bit = 0; bit < 53; ++bit) ones[bit] += (bits >> bit) & 1u ? 1.0 : 0.0;
  }
  EXPECT_EQ(ones[0], kDraws);  // from the added half: odd multiples only
  for (std::size_t bit = 1; bit < 53; ++bit) {
    EXPECT_LT(std::abs(ones[bit] - kDraws / 2.0) / std::sqrt(kDraws / 4.0), kMaxZ) << bit;
  }
}

TEST(CounterChance, NeighbouringKeysAreIndependent) {
  constexpr int kDraws = 100'000;
  const CounterChance chance(4), next_seed(5), high_seed(4 + (std::uint64_t{1} << 32));
  std::vector<std::pair<double, double>> nodes, positions, rows, seeds, high_seeds, tokens, blocks,
      noise_positions, noise_seeds, noise_and_decision;
  for (int i = 0; i < kDraws; ++i) {
    const double u = chance.uniform({i, 4, Purpose::accept});
    nodes.emplace_back(u, chance.uniform({i, 5, Purpose::accept}));
    positions.emplace_back(u, chance.uniform({i + 1, 4, Purpose::accept}));
    rows.emplace_back(chance.uniform({9, i, Purpose::accept}),
                      chance.uniform({10, i, Purpose::accept}));
    seeds.emplace_back(u, next_seed.uniform({i, 4, Purpose::accept}));
    high_seeds.emplace_back(u, high_seed.uniform({i, 4, Purpose::accept}));
    tokens.emplace_back(noise(chance, i, 6), noise(chance, i, 7));  // two halves of one block
    blocks.emplace_back(noise(chance, i, 7), noise(chance, i, 8));
    noise_positions.emplace_back(noise(chance, 11, i), noise(chance, 12, i));
    noise_seeds.emplace_back(noise(chance, 11, i), noise(next_seed, 11, i));
    noise_and_decision.emplace_back(noise(chance, i, 8), u);  // index 4 in both
  }
  expect_independent(nodes, "nodes");
  expect_independent(positions, "positions");
  expect_independent(rows, "positions, along nodes");
  expect_independent(seeds, "seeds");
  expect_independent(high_seeds, "seeds, upper half");
  expect_independent(tokens, "tokens of one block");
  expect_independent(blocks, "tokens of neighbouring blocks");
  expect_independent(noise_positions, "noise at neighbouring positions");
  expect_independent(noise_seeds, "noise of neighbouring seeds");
  expect_independent(noise_and_decision, "noise and decision");
  for (Purpose a : kPurposes) {
    for (Purpose b : kPurposes) {
      if (a >= b) continue;
      std::vector<std::pair<double, double>> purposes;
      for (int i = 0; i < kDraws; ++i) {
        purposes.emplace_back(chance.uniform({i, 0, a}), chance.uniform({i, 0, b}));
      }
      expect_independent(purposes, "purposes");
    }
  }
}

TEST(CounterChance, BernoulliKeepsItsPromises) {
  CounterChance chance(6);
  constexpr int kDraws = 100'000;
  for (double prob : {0.001, 0.3, 0.5, 0.97}) {
    int hits = 0;
    for (int i = 0; i < kDraws; ++i) hits += chance.bernoulli(prob, {i, 2, Purpose::accept});
    EXPECT_LT(std::abs(hits - kDraws * prob) / std::sqrt(kDraws * prob * (1 - prob)), kMaxZ);
  }
  for (int i = 0; i < 10'000; ++i) {
    const Draw draw{i, 0, Purpose::accept};
    for (double never : {0.0, -0.0, -1.0, std::nan("")})
      EXPECT_FALSE(chance.bernoulli(never, draw));
    for (double always : {1.0, 1.5, static_cast<double>(INFINITY)}) {
      EXPECT_TRUE(chance.bernoulli(always, draw));
    }
  }
}

// Both ways of drawing, on supports with gaps and zeros, and with probabilities from 0.5 down to
// 0.002.
TEST(CounterChance, CategoricalFollowsTheDistribution) {
  constexpr int kDraws = 100'000;
  const Distribution gaps{{0, 1, 4, 5, 8, 13, 20}, {0.5, 0.0, 0.25, 0.2, 0.04, 0.008, 0.002}};
  const Distribution zeros_outside{{3, 4, 9}, {0.0, 1.0 / 3, 2.0 / 3}};
  std::vector<double> flat(64, 1.0 / 64);
  for (const Distribution& distribution : {gaps, zeros_outside, Distribution::dense(flat)}) {
    for (Purpose purpose : kPurposes) {
      CounterChance chance(7);
      std::vector<double> counts(distribution.ids.size(), 0.0);
      std::vector<double> expected;
      for (double prob : distribution.probs) expected.push_back(prob * kDraws);
      for (int i = 0; i < kDraws; ++i) {
        const TokenId token = chance.categorical(distribution, {i, 0, purpose});
        const auto at = std::lower_bound(distribution.ids.begin(), distribution.ids.end(), token);
        ASSERT_TRUE(at != distribution.ids.end() && *at == token);
        counts[static_cast<std::size_t>(at - distribution.ids.begin())] += 1;
      }
      EXPECT_LT(std::abs(chi_square_z(counts, expected)), kMaxZ);
    }
  }
}

// The race with its shortcut equals the arg max in the header's definition.
TEST(CounterChance, RaceIsGumbelMax) {
  CounterChance chance(8);
  std::mt19937_64 engine(9);
  // Whole vocabularies, parts of them, scattered tokens.
  constexpr unsigned kMaxApart[] = {1, 3, 40};
  for (int round = 0; round < 2000; ++round) {
    Distribution distribution;
    const double peakedness = static_cast<double>(engine() % 8);
    const unsigned apart = kMaxApart[round % 3];
    double sum = 0;
    for (TokenId id = static_cast<TokenId>(engine() % 3); distribution.ids.size() < 300;
         id += 1 + static_cast<TokenId>(engine() % apart)) {
      distribution.ids.push_back(id);
      const double u = static_cast<double>(engine() >> 11) * 0x1p-53;
      distribution.probs.push_back(engine() % 7 == 0 ? 0.0 : std::pow(u, peakedness));
      sum += distribution.probs.back();
    }
    for (double& prob : distribution.probs) prob /= sum;
    const Draw draw{round, 0, Purpose::token};
    TokenId want = kNoToken;
    double best = -INFINITY;
    for (std::size_t i = 0; i < distribution.ids.size(); ++i) {
      const double score =
          portable_log(distribution.probs[i]) + chance.gumbel(draw, distribution.ids[i]);
      if (score > best) {
        best = score;
        want = distribution.ids[i];
      }
    }
    EXPECT_EQ(chance.categorical(distribution, draw), want) << round;
  }
}

// Two distributions drawn from with one key agree with probability sum over i of 1 / sum over j of
// max(a_j / a_i, b_j / b_i): i wins both exponential races. (Daliri, Musco and Suresh, "Coupling
// without communication and drafter-invariant speculative decoding", 2025.)
TEST(CounterChance, GumbelCouplingAgreesAsOftenAsItShould) {
  const std::vector<double> a = {0.4, 0.3, 0.15, 0.1, 0.05, 0.0};
  const std::vector<double> b = {0.1, 0.35, 0.25, 0.1, 0.0, 0.2};
  double agreement = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == 0 || b[i] == 0) continue;
    double rivals = 0;
    for (std::size_t j = 0; j < a.size(); ++j) rivals += std::max(a[j] / a[i], b[j] / b[i]);
    agreement += 1 / rivals;
  }
  constexpr int kDraws = 200'000;
  CounterChance chance(10);
  const Distribution first = Distribution::dense(a);
  const Distribution second = Distribution::dense(b);
  int agreed = 0;
  for (int i = 0; i < kDraws; ++i) {
    const Draw draw{i, 0, Purpose::token};
    agreed += chance.categorical(first, draw) == chance.categorical(second, draw);
  }
  EXPECT_LT(std::abs(agreed - kDraws * agreement) / std::sqrt(kDraws * agreement * (1 - agreement)),
            kMaxZ);
  const double distance = 1 - overlap(first, second);  // total variation
  EXPECT_GE(agreement, (1 - distance) / (1 + distance));
}

TEST(CounterChance, ShortSumsAndEmptySupports) {
  CounterChance chance(11);
  // Probability missing at the end: the last token that has any takes it.
  const Distribution short_sum{{1, 2, 3}, {1e-9, 1e-9, 0.0}};
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(chance.categorical(short_sum, {i, 0, Purpose::draft}), 2);
    EXPECT_NE(chance.categorical(short_sum, {i, 0, Purpose::token}), 3);
  }
  for (Purpose purpose : kPurposes) {
    EXPECT_EQ(chance.categorical(Distribution::point_mass(5), {3, 1, purpose}), 5);
    EXPECT_EQ(chance.categorical(Distribution{{4, 7}, {0.0, 5e-324}}, {3, 1, purpose}), 7);
    EXPECT_THROW(chance.categorical(Distribution{}, {3, 1, purpose}), Error);
    EXPECT_THROW(chance.categorical(Distribution{{1}, {0.0}}, {3, 1, purpose}), Error);
  }
}

// The statistics can fail: for a number paired with itself, with its folded complement, or drawn
// from a slightly wrong distribution.
TEST(CounterChance, TheStatisticsSeeDependence) {
  const CounterChance chance(12);
  std::vector<std::pair<double, double>> same, folded;
  std::vector<double> counts(2, 0.0);
  for (int i = 0; i < 100'000; ++i) {
    const double u = chance.uniform({i, 0, Purpose::accept});
    same.emplace_back(u, u);
    folded.emplace_back(u, std::abs(2 * u - 1));  // uncorrelated, yet a function of u
    counts[u < 0.52 ? 0 : 1] += 1;
  }
  EXPECT_GT(independence(same).correlation_z, 100);
  EXPECT_LT(std::abs(independence(folded).correlation_z), kMaxZ);
  EXPECT_GT(independence(folded).joint_z, 100);
  EXPECT_GT(chi_square_z(counts, {50'000, 50'000}), kMaxZ);
}

}  // namespace
}  // namespace outrider
