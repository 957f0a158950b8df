// SPDX-License-Identifier: Apache-2.0
// Compares the dynamic programme with all possible trees.
#include "speculate/tree_shapes/sequoia_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <vector>

#include "speculate/tree_shapes/fixed_shape.h"

namespace outrider {
namespace {

// Expected accepted tokens of a tree, root included, from each place's number of children, by the
// definition.
double expected_tokens(const std::vector<int>& n_children, const std::vector<double>& accept) {
  std::vector<double> probs = {1};
  double sum = 0;
  for (std::size_t place = 0; place < probs.size(); ++place) {
    sum += probs[place];
    const int count = place < n_children.size() ? n_children[place] : 0;
    for (int rank = 0; rank < count; ++rank) {
      probs.push_back(probs[place] * accept.at(static_cast<std::size_t>(rank)));
    }
  }
  return sum;
}

// Calls visit for every tree of n_nodes drafted nodes with at most `ranks` children per node.
void for_each_tree(int n_nodes, int ranks,
                   const std::function<void(const std::vector<int>&)>& visit) {
  std::vector<int> n_children;
  const std::function<void(int)> extend = [&](int n_placed) {
    if (n_placed == n_nodes) return visit(n_children);
    // The next place without a number must exist.
    if (static_cast<int>(n_children.size()) > n_placed) return;
    for (int count = 0; count <= std::min(ranks, n_nodes - n_placed); ++count) {
      n_children.push_back(count);
      extend(n_placed + count);
      n_children.pop_back();
    }
  };
  extend(0);
}

TEST(SequoiaTree, IsTheBestOfAllTrees) {
  std::mt19937 random(2);
  std::uniform_real_distribution<double> uniform(0, 1);
  int n_drafting = 0;
  for (int trial = 0; trial < 40; ++trial) {
    std::vector<double> accept(static_cast<std::size_t>(1 + trial % 3));
    double left = 1;
    for (double& prob : accept) left -= prob = left * uniform(random);
    if (trial % 5 == 0) std::reverse(accept.begin(), accept.end());
    const int depth = 1 + trial % 4;
    std::vector<double> target_pass = {1};
    for (int n = 1; n <= 7; ++n) {
      target_pass.push_back(target_pass.back() + 0.2 * uniform(random) * (trial % 2));
    }
    const RoundCosts costs{.draft_level = 0.3 * uniform(random), .target_pass = target_pass};

    double least = target_pass[0];
    for (int n = 1; n <= 7; ++n) {
      for_each_tree(n, static_cast<int>(accept.size()), [&](const std::vector<int>& n_children) {
        const FixedShape shape(n_children);
        ASSERT_EQ(shape.n_nodes(), n);
        if (shape.depth() > depth) return;
        const double cost =
            (shape.depth() * costs.draft_level + target_pass[static_cast<std::size_t>(n)]) /
            expected_tokens(n_children, accept);
        least = std::min(least, cost);
      });
    }
    const PlannedTree plan = plan_sequoia_tree(accept, depth, costs);
    EXPECT_NEAR(plan.cost_per_token, least, 1e-12);
    EXPECT_NEAR(plan.tau, expected_tokens(plan.n_children, accept), 1e-12);
    const FixedShape shape(plan.n_children);
    EXPECT_LE(shape.depth(), depth);
    EXPECT_NEAR(plan.cost_per_token,
                (shape.depth() * costs.draft_level +
                 target_pass[static_cast<std::size_t>(shape.n_nodes())]) /
                    plan.tau,
                1e-12);
    n_drafting += shape.n_nodes() > 0 ? 1 : 0;
  }
  EXPECT_GT(n_drafting, 20);
}

TEST(SequoiaTree, ExtremesGiveChainsFansAndNothing) {
  const std::vector<double> flat(17, 1.0);
  // Rows are free and only first choices are ever right: the best tree is a chain to the depth
  // limit.
  const PlannedTree chain =
      plan_sequoia_tree(std::vector{0.9}, 8, {.draft_level = 0.01, .target_pass = flat});
  EXPECT_EQ(chain.n_children, std::vector<int>(8, 1));
  // Levels are expensive: one level.
  const PlannedTree fan = plan_sequoia_tree(std::vector{0.3, 0.2, 0.2, 0.1}, 8,
                                            {.draft_level = 0.5, .target_pass = flat});
  EXPECT_EQ(fan.n_children, std::vector<int>{4});
  // A draft that costs more than it gains is not made.
  const PlannedTree none =
      plan_sequoia_tree(std::vector{0.2}, 8, {.draft_level = 0.5, .target_pass = flat});
  EXPECT_TRUE(none.n_children.empty());
  EXPECT_EQ(none.tau, 1);
  EXPECT_EQ(none.cost_per_token, 1);
  // An empty budget gives no draft either.
  EXPECT_TRUE(plan_sequoia_tree(std::vector{0.9}, 0, {.target_pass = flat}).n_children.empty());
  EXPECT_TRUE(plan_sequoia_tree({}, 4, {.target_pass = flat}).n_children.empty());
}

}  // namespace
}  // namespace outrider
