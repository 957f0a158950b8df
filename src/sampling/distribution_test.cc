// SPDX-License-Identifier: Apache-2.0
#include "sampling/distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

#include "base/lane_sum.h"

namespace outrider {
namespace {

double random_unit(std::mt19937_64& engine) {
  return static_cast<double>(engine() >> 11) * 0x1p-53;
}

// A distribution over some of n tokens, including entries of probability 0, and the same as a dense
// vector.
struct Pair {
  Distribution sparse;
  std::vector<double> dense;
};

Pair random_pair(std::mt19937_64& engine, std::size_t n, double share) {
  Pair pair;
  pair.dense.assign(n, 0.0);
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (random_unit(engine) >= share) continue;
    const double weight = engine() % 5 == 0 ? 0.0 : random_unit(engine);
    pair.sparse.ids.push_back(static_cast<TokenId>(i));
    pair.sparse.probs.push_back(weight);
    sum += weight;
  }
  if (sum == 0) return random_pair(engine, n, 1.0);
  for (std::size_t i = 0; i < pair.sparse.ids.size(); ++i) {
    pair.sparse.probs[i] /= sum;
    pair.dense[static_cast<std::size_t>(pair.sparse.ids[i])] = pair.sparse.probs[i];
  }
  return pair;
}

TEST(Distribution, LooksUpSparseAndDense) {
  const Distribution sparse{{2, 5, 9}, {0.25, 0.5, 0.25}};
  EXPECT_EQ(sparse.prob(5), 0.5);
  for (TokenId id : {-1, 0, 3, 10}) EXPECT_EQ(sparse.prob(id), 0) << id;
  const std::vector<double> probs = {0.25, 0.0, 0.75};
  const Distribution dense = Distribution::dense(probs);
  EXPECT_EQ(dense.ids, (std::vector<TokenId>{0, 1, 2}));
  EXPECT_EQ(dense.prob(2), 0.75);
  EXPECT_EQ(dense.prob(1), 0);
  EXPECT_EQ(dense.prob(3), 0);
  EXPECT_EQ(dense.prob(-1), 0);
  EXPECT_EQ(Distribution{}.prob(0), 0);
  EXPECT_EQ(Distribution::point_mass(7).prob(7), 1);
  EXPECT_EQ(Distribution::point_mass(0).prob(0), 1);
}

TEST(Distribution, ArgmaxGivesTheLowestOfEquals) {
  EXPECT_EQ((Distribution{{2, 5, 9}, {0.2, 0.4, 0.4}}).argmax(), 5);
  EXPECT_EQ((Distribution{{3, 4}, {0.5, 0.5}}).argmax(), 3);
}

// The merges do to each token what the dense formula does, in the same order of summation. So the
// results are equal, not just near.
TEST(Distribution, MergesAgreeWithDenseReferences) {
  std::mt19937_64 engine(3);
  for (int round = 0; round < 3000; ++round) {
    const std::size_t n = 1 + engine() % 40;
    // Supports that cover 0..n-1 take a separate code path.
    const Pair a = random_pair(engine, n, round % 3 == 0 ? 1.0 : random_unit(engine));
    const Pair b =
        round % 10 == 0 ? a : random_pair(engine, n, round % 2 == 0 ? 1.0 : random_unit(engine));

    double want_overlap = 0;
    LaneSum masses;
    std::vector<double> left(n);
    const double weight = round % 4 == 0 ? 1 : random_unit(engine);
    for (std::size_t i = 0; i < n; ++i) {
      want_overlap += std::min(a.dense[i], b.dense[i]);
      left[i] = std::max(0.0, weight * a.dense[i] - b.dense[i]);
      masses.add(i, left[i]);
    }
    const double want_mass = masses.total();
    EXPECT_EQ(overlap(a.sparse, b.sparse), want_overlap);
    EXPECT_EQ(overlap(b.sparse, a.sparse), want_overlap);

    Distribution from = a.sparse;
    EXPECT_EQ(remainder_mass(from, b.sparse, weight), want_mass);
    EXPECT_EQ(subtract_and_normalise(from, b.sparse, weight), want_mass);
    if (want_mass == 0) {
      EXPECT_EQ(from.ids, a.sparse.ids);
      EXPECT_EQ(from.probs, a.sparse.probs);
      continue;
    }
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_EQ(from.prob(static_cast<TokenId>(i)), left[i] / want_mass);
    }
    for (std::size_t i = 0; i < from.ids.size(); ++i) {
      EXPECT_GT(from.probs[i], 0);
      EXPECT_TRUE(i == 0 || from.ids[i - 1] < from.ids[i]);
      sum += from.probs[i];
    }
    // n divisions and additions, each off by at most 2^-53 of a sum of at most 1.
    EXPECT_NEAR(sum, 1.0, 2 * static_cast<double>(n) * 0x1p-53);
    // The identity behind rejection sampling: the overlap and the residual make the whole. Both
    // sums carry n roundings, and the inputs sum to 1 within as many.
    if (weight == 1) {
      EXPECT_NEAR(want_overlap + want_mass, 1.0, 4 * static_cast<double>(n) * 0x1p-53);
    }
  }
}

TEST(Distribution, CombinesWhatEitherHas) {
  std::mt19937_64 engine(4);
  Distribution got{{3}, {7.0}};
  for (int round = 0; round < 1000; ++round) {
    const std::size_t n = 1 + engine() % 40;
    const Pair a = random_pair(engine, n, round % 3 == 0 ? 1.0 : random_unit(engine));
    const Pair b = random_pair(engine, n, round % 2 == 0 ? 1.0 : random_unit(engine));
    combine(
        a.sparse, b.sparse,
        [](TokenId id, double in_a, double in_b) { return in_a - 2 * in_b + (id == 2 ? 1 : 0); },
        got);
    const auto in = [](const Pair& pair, std::size_t i) {
      return std::find(pair.sparse.ids.begin(), pair.sparse.ids.end(), i) != pair.sparse.ids.end();
    };
    Distribution want;
    for (std::size_t i = 0; i < n; ++i) {
      const double prob = a.dense[i] - 2 * b.dense[i] + (i == 2 ? 1 : 0);
      if (!(prob > 0) || !(in(a, i) || in(b, i))) continue;
      want.ids.push_back(static_cast<TokenId>(i));
      want.probs.push_back(prob);
    }
    ASSERT_EQ(got.ids, want.ids);
    ASSERT_EQ(got.probs, want.probs);
  }
}

TEST(Distribution, NothingLeftLeavesItAsItWas) {
  Distribution from{{1, 4}, {0.5, 0.5}};
  EXPECT_EQ(subtract_and_normalise(from, Distribution{{1, 3, 4}, {0.5, 0.0, 0.5}}), 0);
  EXPECT_EQ(from.ids, (std::vector<TokenId>{1, 4}));
  EXPECT_EQ(from.probs, (std::vector<double>{0.5, 0.5}));
  Distribution empty;
  EXPECT_EQ(subtract_and_normalise(empty, from), 0);
  EXPECT_EQ(subtract_and_normalise(from, Distribution::point_mass(4)), 0.5);
  EXPECT_EQ(from.ids, std::vector<TokenId>{1});
  EXPECT_EQ(from.probs, std::vector<double>{1.0});
}

}  // namespace
}  // namespace outrider
