// SPDX-License-Identifier: Apache-2.0
#include "model/cache/token_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "outrider/error.h"

namespace outrider {
namespace {

void append(TokenTree& tree, const std::vector<int>& parents) {
  tree.reserve(static_cast<int>(parents.size()));
  for (const int parent : parents) tree.append(parent);
}

TEST(TokenTree, RefusesWhatIsNoPathAndStaysAsItIs) {
  TokenTree tree;
  EXPECT_THROW(tree.moves_to_keep(std::vector<int>{0}), Error);
  append(tree, {-1, -1, 1, 0, 2});
  for (const std::vector<int>& path :
       std::vector<std::vector<int>>{{2}, {0, 2}, {-1}, {5}, {1, 2, 4, 4}, {1, 1}, {0, 3, 1}}) {
    EXPECT_THROW(tree.moves_to_keep(path), Error);
  }
  EXPECT_EQ(tree.n_pending(), 5);
  EXPECT_EQ(tree.n_kept(), 0);
}

TEST(TokenTree, KnowsWhatANodeAttendsTo) {
  TokenTree tree;
  append(tree, {-1});
  tree.keep(static_cast<int>(tree.moves_to_keep(std::vector<int>{0}).size()) + 1);
  append(tree, {-1, -1, 1, 0, 2, 4});
  EXPECT_EQ(tree.depth(5), 3);
  EXPECT_EQ(tree.n_contiguous(0), 2);
  EXPECT_EQ(tree.n_contiguous(3), 2);
  EXPECT_EQ(tree.n_contiguous(5), 1);
  std::vector<int> slots(4);
  tree.scattered_slots(5, slots);
  EXPECT_EQ(slots, (std::vector<int>{2, 3, 5, 6}));
}

TEST(TokenTree, NothingMovesWhereThePathIsTheFirstNodes) {
  TokenTree tree;
  append(tree, {-1, 0, 1, -1});
  EXPECT_TRUE(tree.moves_to_keep(std::vector<int>{0, 1, 2}).empty());
  tree.keep(3);
  EXPECT_EQ(tree.n_kept(), 3);
  EXPECT_EQ(tree.n_pending(), 0);
}

// Labels in an array of slots, moved as the tree says, compared with lists that need no moves.
TEST(TokenTree, MovesLeaveThePathBehindTheKeptTokens) {
  std::mt19937 random(1);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int run = 0; run < 200; ++run) {
    TokenTree tree;
    std::vector<int> slots;  // labels by slot
    std::vector<int> kept;   // labels
    std::vector<int> nodes;  // labels
    std::vector<int> parents;
    int next_label = 0;
    for (int step = 0; step < 30; ++step) {
      switch (below(4)) {
        case 0:
        case 1: {
          const int n_new = 1 + below(8);
          tree.reserve(n_new);
          for (int i = 0; i < n_new; ++i) {
            parents.push_back(below(tree.n_pending() + 1) - 1);
            tree.append(parents.back());
            nodes.push_back(next_label);
            slots.resize(static_cast<std::size_t>(tree.n_slots() - 1));
            slots.push_back(next_label++);
          }
          break;
        }
        case 2: {
          std::vector<int> path;
          for (int node = below(tree.n_pending() + 1) - 1; node >= 0;
               node = parents[static_cast<std::size_t>(node)]) {
            path.insert(path.begin(), node);
          }
          const auto moves = tree.moves_to_keep(path);
          for (const SlotMove& move : moves) {
            ASSERT_LT(move.to, move.from);
            slots[static_cast<std::size_t>(move.to)] = slots[static_cast<std::size_t>(move.from)];
          }
          tree.keep(static_cast<int>(path.size()));
          for (const int node : path) kept.push_back(nodes[static_cast<std::size_t>(node)]);
          nodes.clear();
          parents.clear();
          break;
        }
        case 3: {
          const int n = std::max(tree.n_kept() - below(4), 0);
          if (below(2) == 0) {
            tree.rewind(n);
            kept.resize(static_cast<std::size_t>(n));
          } else {
            tree = tree.fork();
          }
          nodes.clear();
          parents.clear();
          break;
        }
      }
      ASSERT_EQ(tree.n_kept(), static_cast<int>(kept.size()));
      ASSERT_EQ(tree.n_pending(), static_cast<int>(nodes.size()));
      ASSERT_TRUE(std::equal(kept.begin(), kept.end(), slots.begin()));
      for (int node = 0; node < tree.n_pending(); ++node) {
        std::vector<int> path;
        for (int at = node; at >= 0; at = parents[static_cast<std::size_t>(at)]) {
          path.insert(path.begin(), tree.n_kept() + at);
        }
        ASSERT_EQ(tree.depth(node) + 1, static_cast<int>(path.size()));
        const int n_contiguous = tree.n_contiguous(node) - tree.n_kept();
        std::vector<int> read;
        for (int i = 0; i < n_contiguous; ++i) read.push_back(tree.n_kept() + i);
        std::vector<int> others(path.size() - read.size());
        tree.scattered_slots(node, others);
        read.insert(read.end(), others.begin(), others.end());
        ASSERT_EQ(read, path);
      }
    }
  }
}

}  // namespace
}  // namespace outrider
