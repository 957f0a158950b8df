// SPDX-License-Identifier: Apache-2.0
// Compares blocks and requested rows with a pass assembled by hand.
#include "speculate/block_builder.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/models/table_model.h"

namespace outrider {
namespace {

using test::TableModel;
using Ids = std::vector<TokenId>;
using Numbers = std::vector<int>;

class BlockBuilding : public ::testing::Test {
 protected:
  static Ids tokens(const TokenBlock& block) { return {block.tokens.begin(), block.tokens.end()}; }
  static Numbers parents(const TokenBlock& block) {
    return {block.parents.begin(), block.parents.end()};
  }
  static Numbers listed(const RowSet& rows) { return {rows.rows.begin(), rows.rows.end()}; }

  TableModel model_{6, 1};
  std::unique_ptr<Sequence> first_ = model_.open({});
  std::unique_ptr<Sequence> second_ = model_.open({});
};

TEST_F(BlockBuilding, ShowsTreesAndChainsOfSeveralSequences) {
  BlockBuilder builder;
  for (int pass = 0; pass < 2; ++pass) {  // the second time, the storage holds an old pass
    builder.clear();
    builder.begin_block(*first_);
    EXPECT_EQ(builder.add(5, -1), 0);
    EXPECT_EQ(builder.add(4, 0), 1);
    EXPECT_EQ(builder.add(3, 0), 2);
    builder.ask();
    builder.begin_block(*second_);
    builder.add_chain(Ids{1, 2});
    builder.begin_block(*first_);
    EXPECT_EQ(builder.add(0, 7), 0);
    builder.ask();
    const std::span<const TokenBlock> blocks = builder.blocks();
    ASSERT_EQ(blocks.size(), 3U);
    EXPECT_EQ(blocks[0].sequence, first_.get());
    EXPECT_EQ(blocks[1].sequence, second_.get());
    EXPECT_EQ(tokens(blocks[0]), (Ids{5, 4, 3}));
    EXPECT_EQ(parents(blocks[0]), (Numbers{-1, 0, 0}));
    EXPECT_EQ(tokens(blocks[1]), (Ids{1, 2}));
    EXPECT_TRUE(blocks[1].parents.empty());
    EXPECT_EQ(tokens(blocks[2]), Ids{0});
    EXPECT_EQ(parents(blocks[2]), Numbers{7});  // the chain in front of it has no parents
    EXPECT_TRUE(blocks[0].features.empty());
    EXPECT_EQ(builder.rows().kind, RowSet::Kind::listed);
    EXPECT_EQ(listed(builder.rows()), (Numbers{2, 5}));
    EXPECT_EQ(builder.n_rows(), 6);
    EXPECT_EQ(builder.first_row(1), 3);
    EXPECT_EQ(builder.n_rows_of(0), 3);
    EXPECT_EQ(builder.n_rows_of(1), 2);
    EXPECT_EQ(builder.n_rows_of(2), 1);
  }
}

TEST_F(BlockBuilding, NamesTheRowsAskedFor) {
  BlockBuilder builder;
  builder.begin_block(*first_);
  builder.add(1, -1);
  EXPECT_EQ(builder.rows().kind, RowSet::Kind::none);
  builder.ask();
  EXPECT_EQ(builder.rows().kind, RowSet::Kind::last_of_each_block);
  builder.add(2, 0);
  EXPECT_EQ(builder.rows().kind, RowSet::Kind::listed);  // one row per block, but not the last one
  builder.ask();
  EXPECT_EQ(builder.rows().kind, RowSet::Kind::all);
  builder.begin_block(*second_);
  builder.add_chain(Ids{1, 2});
  // As many rows as blocks, but both in one block.
  EXPECT_EQ(builder.rows().kind, RowSet::Kind::listed);
  builder.clear();
  EXPECT_EQ(builder.rows().kind, RowSet::Kind::none);
  EXPECT_TRUE(builder.blocks().empty());
}

TEST_F(BlockBuilding, GivesEachBlockItsStates) {
  BlockBuilder builder(2);
  builder.begin_block(*first_);
  builder.add_chain(Ids{1, 2});
  builder.add_states(std::vector<float>{1, 2, 3, 4});
  builder.begin_block(*second_);
  builder.add(3, -1);
  builder.add_states(std::vector<float>{5, 6});
  const std::span<const TokenBlock> blocks = builder.blocks();
  const std::vector<float> first(blocks[0].features.begin(), blocks[0].features.end());
  const std::vector<float> second(blocks[1].features.begin(), blocks[1].features.end());
  EXPECT_EQ(first, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(second, (std::vector<float>{5, 6}));
}

// Nodes run level by level give the same rows as one pass over their paths.
TEST_F(BlockBuilding, NodesStandBehindTheirParents) {
  DraftTree tree;
  tree.reset(0, 1);
  const int left = tree.add_child(0, 1, kPointMass);
  const int right = tree.add_child(0, 2, kPointMass);
  BlockBuilder builder;
  ForwardOutput output;
  std::vector<int> pending;
  const auto run = [&](const Numbers& nodes) {
    builder.clear();
    builder.begin_block(*first_);
    builder.add_nodes(tree, nodes, pending);
    model_.forward(builder.blocks(), {.logits = builder.rows()}, output);
    ASSERT_EQ(output.logits.n_rows(), static_cast<int>(nodes.size()));
    for (std::size_t row = 0; row < nodes.size(); ++row) {
      Ids prefix;
      tree.path_tokens(nodes[row], prefix);
      prefix.insert(prefix.begin(), 0);
      const std::span<const float> got = output.logits_row(static_cast<int>(row));
      EXPECT_EQ(std::vector<float>(got.begin(), got.end()), model_.logits(prefix));
    }
  };
  // The root is no longer pending but kept.
  builder.begin_block(*first_);
  builder.add(0, -1);
  model_.forward(builder.blocks(), {.logits = builder.rows()}, output);
  first_->keep(Numbers{0});
  run({left, right});
  EXPECT_EQ(pending, (Numbers{-1, 0, 1}));
  const int below_right = tree.add_child(right, 3, kPointMass);
  const int below_left = tree.add_child(left, 4, kPointMass);
  run({below_right, below_left});
  EXPECT_EQ(pending, (Numbers{-1, 0, 1, 2, 3}));
  // Later a single node; another node of its level was not run.
  const int unrun = tree.add_child(below_left, 5, kPointMass);
  const int asked = tree.add_child(below_left, 1, kPointMass);
  run({asked});
  EXPECT_EQ(pending[static_cast<std::size_t>(unrun)], -1);
  EXPECT_EQ(pending[static_cast<std::size_t>(asked)], 4);
}

}  // namespace
}  // namespace outrider
