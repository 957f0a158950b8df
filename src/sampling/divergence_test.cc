// SPDX-License-Identifier: Apache-2.0
#include "sampling/divergence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <vector>

#include "base/elementary.h"

namespace outrider {
namespace {

const Distribution kA{{1, 3, 4}, {0.5, 0.25, 0.25}};
const Distribution kB{{0, 3, 4}, {0.125, 0.75, 0.125}};
const Distribution kHalf{{1, 3}, {0.5, 0.5}};

// A few roundings of doubles per term.
constexpr double kTight = 1e-15;

TEST(Divergence, EntropyAndLargest) {
  EXPECT_NEAR(entropy(kA), 1.5 * std::log(2.0), kTight);
  EXPECT_EQ(entropy(Distribution::point_mass(7)), 0);
  EXPECT_EQ(entropy({{0, 1}, {1.0, 0.0}}), 0);
  EXPECT_EQ(largest_prob(kB), 0.75);
  EXPECT_EQ(largest_prob({}), 0);
}

TEST(Divergence, TotalVariation) {
  EXPECT_NEAR(total_variation(kA, kB), (0.125 + 0.5 + 0.5 + 0.125) / 2, kTight);
  EXPECT_EQ(total_variation(kA, kB), total_variation(kB, kA));
  EXPECT_EQ(total_variation(kA, kA), 0);
  EXPECT_EQ(total_variation(Distribution::point_mass(1), Distribution::point_mass(2)), 1);
}

TEST(Divergence, KullbackLeibler) {
  EXPECT_EQ(kl_divergence(kA, kB), std::numeric_limits<double>::infinity());
  EXPECT_NEAR(kl_divergence(kHalf, {{1, 3}, {0.25, 0.75}}),
              0.5 * std::log(2.0) + 0.5 * std::log(0.5 / 0.75), kTight);
  EXPECT_EQ(kl_divergence(kA, kA), 0);
  // A token that only the second distribution has costs just the probability it takes.
  EXPECT_NEAR(kl_divergence(Distribution::point_mass(3), kB), -std::log(0.75), kTight);
}

TEST(Divergence, JensenShannonIsBounded) {
  EXPECT_NEAR(jensen_shannon(Distribution::point_mass(1), Distribution::point_mass(2)),
              std::log(2.0), kTight);
  EXPECT_EQ(jensen_shannon(kA, kA), 0);
  const Distribution middle{{0, 1, 3, 4}, {0.0625, 0.25, 0.5, 0.1875}};
  EXPECT_NEAR(jensen_shannon(kA, kB), (kl_divergence(kA, middle) + kl_divergence(kB, middle)) / 2,
              kTight);
}

// Logarithms are taken in batches: the sums equal those taken one at a time, for any number of
// terms.
TEST(Divergence, SumsAnyNumberOfLogarithms) {
  std::mt19937_64 engine(5);
  for (const std::size_t n : {255u, 256u, 257u, 1000u}) {
    Distribution a;
    Distribution b;
    double in_order = 0;
    double its_entropy = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const auto draw = [&] { return static_cast<double>(engine() >> 11) * 0x1p-53 / 500; };
      // The fast loop skips subnormal numbers.
      const double in_a = i == 7 ? 5e-324 : draw();
      const double in_b = draw();
      for (Distribution* dist : {&a, &b}) dist->ids.push_back(static_cast<TokenId>(i));
      a.probs.push_back(in_a);
      b.probs.push_back(in_b);
      in_order += in_a * portable_log(in_a / in_b);
      its_entropy -= in_a * portable_log(in_a);
    }
    EXPECT_EQ(kl_divergence(a, b), std::max(0.0, in_order)) << n;
    EXPECT_EQ(entropy(a), its_entropy) << n;
  }
}

TEST(Divergence, WalksBothSupportsInOrder) {
  std::vector<TokenId> ids;
  for_each_in_either(kA, kB, [&](TokenId id, double in_a, double in_b) {
    ids.push_back(id);
    EXPECT_EQ(in_a, kA.prob(id));
    EXPECT_EQ(in_b, kB.prob(id));
  });
  EXPECT_EQ(ids, (std::vector<TokenId>{0, 1, 3, 4}));
}

}  // namespace
}  // namespace outrider
