// SPDX-License-Identifier: Apache-2.0
#include "tests/support/statistics.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace outrider::test {
namespace {

// Tabulated quantiles of the chi-square distribution.
TEST(Statistics, ChiSquareTailMatchesTables) {
  EXPECT_NEAR(chi_square_tail(3.841459, 1), 0.05, 1e-7);
  EXPECT_NEAR(chi_square_tail(18.307038, 10), 0.05, 1e-7);
  EXPECT_NEAR(chi_square_tail(135.806723, 100), 0.01, 1e-7);
  EXPECT_NEAR(chi_square_tail(2.558212, 10), 0.99, 1e-7);
}

TEST(Statistics, TellUniformFromAlmostUniform) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<double> fair(100'000);
  std::vector<double> bent(100'000);
  Correlation independent;
  Correlation dependent;
  for (std::size_t index = 0; index < fair.size(); ++index) {
    fair[index] = uniform(random);
    bent[index] = std::pow(fair[index], 1.05);
    const double other = uniform(random);
    independent.add(fair[index], other);
    dependent.add(fair[index], other + 0.05 * fair[index]);
  }
  EXPECT_GT(ks_tail(ks_uniform(fair)), 1e-3);
  EXPECT_LT(ks_tail(ks_uniform(bent)), 1e-6);
  EXPECT_LT(std::abs(independent.z()), 4);
  EXPECT_GT(std::abs(dependent.z()), 5);
}

TEST(Statistics, TwoSamplesOfOneDistributionAndOfTwo) {
  std::mt19937_64 random(2);
  std::discrete_distribution<int> one({5, 3, 1, 0.5, 0.0001});
  std::discrete_distribution<int> other({5, 3.5, 1, 0.5, 0.0001});
  std::vector<double> a(5), b(5), c(5);
  for (int draw = 0; draw < 50'000; ++draw) {
    a[static_cast<std::size_t>(one(random))] += 1;
    b[static_cast<std::size_t>(one(random))] += 1;
    c[static_cast<std::size_t>(other(random))] += 1;
  }
  EXPECT_GT(chi_square_two_samples(a, b).tail, 1e-3);
  EXPECT_LT(chi_square_two_samples(a, c).tail, 1e-6);
}

TEST(Statistics, OneSampleAgainstItsDistributionAndAnother) {
  std::mt19937_64 random(3);
  const std::vector<double> weights = {5, 3, 1, 0.5, 0.4, 0.0001};
  std::discrete_distribution<int> one(weights.begin(), weights.end());
  std::vector<double> counts(weights.size());
  for (int draw = 0; draw < 50'000; ++draw) counts[static_cast<std::size_t>(one(random))] += 1;
  const double sum = 9.9001;
  std::vector<double> dist;
  for (const double weight : weights) dist.push_back(weight / sum);
  EXPECT_GT(chi_square_one_sample(counts, dist).tail, 1e-3);
  EXPECT_EQ(chi_square_one_sample(counts, dist).degrees, 4);  // the rarest outcome has no bin
  std::vector<double> other = dist;
  other[0] += 0.02;
  other[1] -= 0.02;
  EXPECT_LT(chi_square_one_sample(counts, other).tail, 1e-6);
  // Outcomes that the distribution does not contain.
  const std::vector<double> seen = {500, 500};
  const std::vector<double> impossible = {1, 0};
  EXPECT_LT(chi_square_one_sample(seen, impossible).tail, 1e-6);
}

}  // namespace
}  // namespace outrider::test
