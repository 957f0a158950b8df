// SPDX-License-Identifier: Apache-2.0
#include "speculate/draft_tree.h"

#include <gtest/gtest.h>

#include <vector>

#include "outrider/error.h"

namespace outrider {
namespace {

int add_probs(DraftTree& tree, std::vector<double> probs) {
  const int dist = tree.add_distribution();
  tree.distribution(dist) = Distribution::dense(probs);
  return dist;
}

TEST(DraftTree, ProposalsWithoutReplacement) {
  DraftTree tree;
  tree.reset(0, 1);
  const int dist = add_probs(tree, {0.5, 0.25, 0.125, 0.125});
  const int other = add_probs(tree, {0.25, 0.25, 0.25, 0.25});
  Distribution storage;
  EXPECT_EQ(tree.remaining_prob(0, dist, storage), &tree.distribution(dist));
  const int first = tree.add_child(0, 0, dist, Replacement::without);
  const int named = tree.add_child(0, 3, kPointMass);
  const int with = tree.add_child(0, 0, dist);
  const int elsewhere = tree.add_child(0, 0, other, Replacement::without);
  const int deeper = tree.add_child(first, 1, dist, Replacement::without);
  const int second = tree.add_child(0, 2, dist, Replacement::without);

  // Only siblings drawn from the same distribution in the same way are removed from it.
  EXPECT_EQ(&tree.proposal_prob(first, storage), &tree.distribution(dist));
  EXPECT_EQ(&tree.proposal_prob(with, storage), &tree.distribution(dist));
  EXPECT_EQ(&tree.proposal_prob(elsewhere, storage), &tree.distribution(other));
  EXPECT_EQ(&tree.proposal_prob(deeper, storage), &tree.distribution(dist));
  EXPECT_EQ(tree.proposal_prob(named, storage).ids, std::vector<TokenId>{3});
  const Distribution& rest = tree.proposal_prob(second, storage);
  EXPECT_EQ(rest.ids, (std::vector<TokenId>{1, 2, 3}));
  EXPECT_EQ(rest.probs, (std::vector<double>{0.5, 0.25, 0.25}));

  const Distribution* left = tree.remaining_prob(0, dist, storage);
  ASSERT_NE(left, nullptr);
  EXPECT_EQ(left->ids, (std::vector<TokenId>{1, 3}));
  tree.add_child(0, 1, dist, Replacement::without);
  EXPECT_NE(tree.remaining_prob(0, dist, storage), nullptr);
  tree.add_child(0, 3, dist, Replacement::without);
  EXPECT_EQ(tree.remaining_prob(0, dist, storage), nullptr);
}

TEST(DraftTree, RetainNumbersAnewAndKeepsSampledNodes) {
  DraftTree tree;
  tree.reset(9, 4);
  const int dist = add_probs(tree, {1});
  tree.add_child(0, 1, kPointMass);
  tree.add_child(0, 2, kPointMass);
  tree.add_child(1, 3, kPointMass);
  tree.add_child(2, 4, kPointMass);
  tree.set_draft_prob(2, dist);
  tree.add_child(4, 5, kPointMass);
  tree.retain(std::vector<int>{0, 2, 4, 5});
  ASSERT_EQ(tree.n_nodes(), 4);
  EXPECT_TRUE(tree.is_chain());
  EXPECT_EQ(tree.node(1).token, 2);
  EXPECT_EQ(tree.node(1).draft_prob, dist);
  EXPECT_EQ(tree.node(3).token, 5);
  EXPECT_EQ(tree.node(3).parent, 2);
  EXPECT_EQ(tree.node(3).depth, 3);

  tree.add_child(3, 0, dist);
  EXPECT_THROW(tree.retain(std::vector<int>{0, 1, 2, 3}), Error);
  EXPECT_EQ(tree.n_nodes(), 5);
}

TEST(DraftTree, ScratchNodesAreNobodysChildren) {
  DraftTree tree;
  tree.reset(9, 4);
  tree.add_child(0, 1, kPointMass);
  tree.add_child(1, 2, kPointMass);
  const int beside = tree.add_scratch(0, 3);
  const int behind = tree.add_scratch(2, 4);
  const int deeper = tree.add_scratch(behind, 5);
  EXPECT_EQ(tree.n_nodes(), 6);
  EXPECT_EQ(tree.n_drafted(), 2);
  EXPECT_EQ(tree.n_scratch(), 3);
  EXPECT_EQ(tree.node(deeper).depth, 4);
  EXPECT_TRUE(tree.is_chain());
  EXPECT_EQ(tree.next_child(0, 1), -1);
  EXPECT_EQ(tree.next_child(2, 2), -1);
  EXPECT_EQ(tree.next_child(behind, behind), -1);
  std::vector<TokenId> path;
  tree.path_tokens(deeper, path);
  EXPECT_EQ(path, (std::vector<TokenId>{1, 2, 4, 5}));
  EXPECT_THROW(tree.add_child(2, 6, kPointMass), Error);

  tree.retain(std::vector<int>{0, 1, beside});
  EXPECT_EQ(tree.n_drafted(), 1);
  EXPECT_EQ(tree.n_scratch(), 1);
  tree.reset(0, 1);
  EXPECT_EQ(tree.n_drafted() + tree.n_scratch(), 0);
  EXPECT_EQ(tree.add_child(0, 1, kPointMass), 1);
}

}  // namespace
}  // namespace outrider
