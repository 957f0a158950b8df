#include "speculate/draft_tree.h"

#include <gtest/gtest.h>

#include <vector>

#include "outrider/error.h"

namespace outrider {
namespace {

int add_law(DraftTree& tree, std::vector<double> probs) {
  const int law = tree.add_distribution();
  tree.distribution(law) = Distribution::dense(probs);
  return law;
}

TEST(DraftTree, ProposalsWithoutReplacement) {
  DraftTree tree;
  tree.reset(0, 1);
  const int law = add_law(tree, {0.5, 0.25, 0.125, 0.125});
  const int other = add_law(tree, {0.25, 0.25, 0.25, 0.25});
  Distribution storage;
  EXPECT_EQ(tree.remaining_prob(0, law, storage), &tree.distribution(law));
  const int first = tree.add_child(0, 0, law, Draws::without_replacement);
  const int named = tree.add_child(0, 3, kPointMass);
  const int with = tree.add_child(0, 0, law);
  const int elsewhere = tree.add_child(0, 0, other, Draws::without_replacement);
  const int deeper = tree.add_child(first, 1, law, Draws::without_replacement);
  const int second = tree.add_child(0, 2, law, Draws::without_replacement);

  // Only siblings drawn from the same distribution in the same way are removed from it.
  EXPECT_EQ(&tree.proposal_prob(first, storage), &tree.distribution(law));
  EXPECT_EQ(&tree.proposal_prob(with, storage), &tree.distribution(law));
  EXPECT_EQ(&tree.proposal_prob(elsewhere, storage), &tree.distribution(other));
  EXPECT_EQ(&tree.proposal_prob(deeper, storage), &tree.distribution(law));
  EXPECT_EQ(tree.proposal_prob(named, storage).ids, std::vector<TokenId>{3});
  const Distribution& rest = tree.proposal_prob(second, storage);
  EXPECT_EQ(rest.ids, (std::vector<TokenId>{1, 2, 3}));
  EXPECT_EQ(rest.probs, (std::vector<double>{0.5, 0.25, 0.25}));

  const Distribution* left = tree.remaining_prob(0, law, storage);
  ASSERT_NE(left, nullptr);
  EXPECT_EQ(left->ids, (std::vector<TokenId>{1, 3}));
  tree.add_child(0, 1, law, Draws::without_replacement);
  EXPECT_NE(tree.remaining_prob(0, law, storage), nullptr);
  tree.add_child(0, 3, law, Draws::without_replacement);
  EXPECT_EQ(tree.remaining_prob(0, law, storage), nullptr);
}

TEST(DraftTree, RetainNumbersAnewAndKeepsSampledNodes) {
  DraftTree tree;
  tree.reset(9, 4);
  const int law = add_law(tree, {1});
  tree.add_child(0, 1, kPointMass);
  tree.add_child(0, 2, kPointMass);
  tree.add_child(1, 3, kPointMass);
  tree.add_child(2, 4, kPointMass);
  tree.set_draft_prob(2, law);
  tree.add_child(4, 5, kPointMass);
  tree.retain(std::vector<int>{0, 2, 4, 5});
  ASSERT_EQ(tree.n_nodes(), 4);
  EXPECT_TRUE(tree.is_chain());
  EXPECT_EQ(tree.node(1).token, 2);
  EXPECT_EQ(tree.node(1).draft_prob, law);
  EXPECT_EQ(tree.node(3).token, 5);
  EXPECT_EQ(tree.node(3).parent, 2);
  EXPECT_EQ(tree.node(3).depth, 3);

  tree.add_child(3, 0, law);
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
