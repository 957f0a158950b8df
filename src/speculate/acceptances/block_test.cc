// SPDX-License-Identifier: Apache-2.0
#include "speculate/acceptances/block.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "sampling/counter_chance.h"
#include "speculate/acceptances/traversal.h"
#include "speculate/rules/make_rule.h"
#include "tests/support/proofs/fixed_views.h"

namespace outrider {
namespace {

struct ChainViews : test::FixedViews {
  std::vector<Distribution> dists;
  const Distribution& target(int node) override { return dists[static_cast<std::size_t>(node)]; }
  const Distribution& raw_target(int node) override { return target(node); }
};

// A random distribution over some of six tokens, at least one.
Distribution random_distribution(std::mt19937& random) {
  Distribution dist;
  double sum = 0;
  while (dist.ids.empty()) {
    for (TokenId id = 0; id < 6; ++id) {
      if (random() % 3 == 0) continue;
      dist.ids.push_back(id);
      dist.probs.push_back(std::uniform_real_distribution<double>(0.01, 1)(random));
      sum += dist.probs.back();
    }
  }
  for (double& prob : dist.probs) prob /= sum;
  return dist;
}

// Drafts of zero to five tokens. Some target distributions give a drafted token no probability, so
// that nothing after it can be accepted. Some equal the drafter's, so that a rejection would leave
// no residual. Verdicts are reused from round to round and must not depend on earlier rounds.
TEST(Block, JudgesChainsAsTraversalDoesDrawForDraw) {
  const std::shared_ptr<const Rule> rule = make_rule(std::string("exact"));
  const Block<BlockSteps> block(rule);
  const Traversal<TraversalSteps> traversal(rule);
  Verdict of_block;
  Verdict of_traversal;
  DraftTree tree;
  int n_whole = 0;
  int n_cut = 0;
  for (std::uint32_t seed = 1; seed <= 4000; ++seed) {
    std::mt19937 random(seed);
    ChainViews views;
    tree.reset(0, static_cast<std::int64_t>(random() % 100));
    const int n_drafted = static_cast<int>(random() % 6);
    bool impossible = false;
    for (int node = 0; node < n_drafted; ++node) {
      const int index = tree.add_distribution();
      tree.distribution(index) = random_distribution(random);
      const Distribution& draft = tree.distribution(index);
      const TokenId token = draft.ids[random() % draft.ids.size()];
      tree.add_child(node, token, index);
      views.dists.push_back(random() % 5 == 0 ? draft : random_distribution(random));
      impossible |= views.dists.back().prob(token) <= 0;
    }
    views.dists.push_back(random_distribution(random));
    CounterChance chance(seed);
    block.verify(tree, views, chance, of_block);
    traversal.verify(tree, views, chance, of_traversal);
    ASSERT_EQ(of_block.path, of_traversal.path) << seed;
    EXPECT_EQ(of_block.next, of_traversal.next) << seed;
    EXPECT_EQ(of_block.corrected, of_traversal.corrected) << seed;
    EXPECT_EQ(of_block.next_prob.ids, of_traversal.next_prob.ids) << seed;
    EXPECT_EQ(of_block.next_prob.probs, of_traversal.next_prob.probs) << seed;
    EXPECT_EQ(of_block.costs.size(), of_block.path.size() + 1) << seed;
    n_whole += n_drafted > 1 && !of_block.corrected;
    n_cut += impossible;
  }
  EXPECT_GT(n_whole, 100);
  EXPECT_GT(n_cut, 100);
}

}  // namespace
}  // namespace outrider
