// SPDX-License-Identifier: Apache-2.0
#include "speculate/acceptances/typical.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "sampling/counter_chance.h"
#include "sampling/divergence.h"
#include "tests/support/proofs/fixed_views.h"

namespace outrider {
namespace {

// Views with a target distribution for every node.
struct TargetViews final : test::FixedViews {
  std::vector<Distribution> targets;
  const Distribution& target(int node) override { return targets[static_cast<std::size_t>(node)]; }
};

Distribution dense(std::vector<double> probs) { return Distribution::dense(probs); }

Verdict judge(const DraftTree& tree, TargetViews& views, double epsilon, double delta,
              std::uint64_t seed = 1) {
  Verdict verdict;
  CounterChance chance(seed);
  Typical(epsilon, delta).verify(tree, views, chance, verdict);
  return verdict;
}

TEST(Typical, KeepsWhatTheTargetFindsPlausible) {
  DraftTree tree;
  tree.reset(0, 1);
  tree.add_child(0, 1, kPointMass);
  tree.add_child(1, 2, kPointMass);
  TargetViews views;
  views.targets = {dense({0.3, 0.3, 0.4}), dense({0.6, 0.3, 0.1}), dense({1, 0, 0})};
  // exp(-entropy) of the second is 0.6^0.6 0.3^0.3 0.1^0.1 = 0.407.
  EXPECT_EQ(judge(tree, views, 0.09, 0.3).path, (std::vector<int>{1, 2}));
  EXPECT_EQ(judge(tree, views, 0.11, 0.3).path, (std::vector<int>{1}));  // 0.1 > 0.11 does not hold
  EXPECT_EQ(judge(tree, views, 0.11, 0.2).path, (std::vector<int>{1, 2}));  // 0.1 > 0.081 does
  EXPECT_EQ(judge(tree, views, 0.1, 1).path, (std::vector<int>{1}));        // equal is not above
  EXPECT_EQ(judge(tree, views, 0.9, 1).path, (std::vector<int>{}));  // 0.3 > 0.336 does not hold
}

TEST(Typical, TheTokenAfterIsTheTargets) {
  DraftTree tree;
  tree.reset(0, 1);
  tree.add_child(0, 1, kPointMass);
  TargetViews views;
  views.targets = {dense({0.5, 0.5}), dense({0, 1})};
  const Verdict bonus = judge(tree, views, 0.09, 0.3);
  EXPECT_FALSE(bonus.corrected);
  EXPECT_EQ(bonus.next, 1);
  views.targets[0] = dense({1, 0});
  const Verdict corrected = judge(tree, views, 0.09, 0.3);
  EXPECT_TRUE(corrected.corrected);
  EXPECT_EQ(corrected.next, 0);
}

TEST(Typical, CostsAreGivenTheDraft) {
  DraftTree tree;
  tree.reset(0, 1);
  tree.add_child(0, 1, kPointMass);
  TargetViews views;
  views.targets = {dense({0.75, 0.25}), dense({0.5, 0.5})};
  const Verdict verdict = judge(tree, views, 0.09, 0.3);
  ASSERT_EQ(verdict.costs.size(), 2U);
  EXPECT_NEAR(verdict.costs[0].kl, std::log(4.0), 1e-15);
  EXPECT_EQ(verdict.costs[0].total_variation, 0.75);
  EXPECT_EQ(verdict.costs[0].deferral, 0);
  EXPECT_EQ(verdict.costs[1].kl, 0);
  EXPECT_EQ(verdict.costs[1].deferral, 1);
}

// Compares with every path of random trees.
TEST(Typical, KeepsTheLongestPlausiblePathAndOfSeveralTheLikeliest) {
  std::mt19937 random(12);
  int n_ties = 0;
  for (int trial = 0; trial < 500; ++trial) {
    DraftTree tree;
    tree.reset(0, 1);
    TargetViews views;
    const auto random_target = [&] {
      Distribution target;
      Transform({.temperature = 1}, 5).distribution(test::random_logits(5, random), target);
      return target;
    };
    views.targets.push_back(random_target());
    for (int node = 1; node < 14; ++node) {
      tree.add_child(static_cast<int>(random() % static_cast<unsigned>(node)),
                     static_cast<TokenId>(random() % 5), kPointMass);
      views.targets.push_back(random_target());
    }
    const double epsilon = 0.25;
    const double delta = 0.5;
    int best = 0;
    double best_logprob = 0;
    int n_best = 1;
    for (int node = 1; node < tree.n_nodes(); ++node) {
      double logprob = 0;
      bool plausible = true;
      for (int at = node; at > 0; at = tree.node(at).parent) {
        const Distribution& target = views.targets[static_cast<std::size_t>(tree.node(at).parent)];
        const double prob = target.prob(tree.node(at).token);
        plausible = plausible && prob > std::min(epsilon, delta * std::exp(-entropy(target)));
        logprob += std::log(prob);
      }
      if (!plausible) continue;
      const int depth = tree.node(node).depth;
      const int best_depth = tree.node(best).depth;
      n_best = depth > best_depth ? 1 : n_best + (depth == best_depth ? 1 : 0);
      if (depth > best_depth || (depth == best_depth && logprob > best_logprob)) {
        best = node;
        best_logprob = logprob;
      }
    }
    n_ties += n_best > 1 ? 1 : 0;
    std::vector<int> path;
    for (int at = best; at > 0; at = tree.node(at).parent) path.insert(path.begin(), at);
    EXPECT_EQ(judge(tree, views, epsilon, delta).path, path);
  }
  EXPECT_GT(n_ties, 50);
}

}  // namespace
}  // namespace outrider
