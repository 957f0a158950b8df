// SPDX-License-Identifier: Apache-2.0
// Follows traversals of random trees with slots that remember which node's state they hold.
#include "model/pass/state_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <random>
#include <vector>

namespace outrider {
namespace {

std::shared_ptr<KvCache> cache() {
  const std::vector<LayerCache> layers = {{.n_heads = 1, .head_dim = 4}};
  return std::make_shared<KvCache>(layers, kernels::KvKind::f32);
}

// Adds rows after the sequence's pending nodes; a parent's number is below its children's.
void add_rows(KvSequence& sequence, const std::vector<int>& parents, std::vector<PassRow>& rows) {
  int node = sequence.n_pending();
  for (const int parent : parents) {
    rows.push_back({.sequence = &sequence, .node = node++, .parent = parent});
  }
}

// Visits every row once, and ancestors, in an order in which each finds its parent's state in its
// slot. Returns the number of nodes visited.
int follow(const StateWalks& walks, int index, const std::vector<PassRow>& rows) {
  const StateWalks::Walk walk = walks.walk(index);
  std::vector<int> holds(static_cast<std::size_t>(walks.n_slots()), -2);
  std::vector<bool> seen(1000, false);
  std::vector<bool> needed(1000, false);
  int n_needed = 0;
  for (const PassRow& row : rows) {
    if (row.sequence != walk.sequence) continue;
    const int first = row.sequence->n_pending();
    for (int node = row.node; node >= 0;) {
      if (!needed[static_cast<std::size_t>(node)]) ++n_needed;
      needed[static_cast<std::size_t>(node)] = true;
      node = node >= first ? (&row)[node - row.node].parent : walk.sequence->parent(node);
    }
  }
  for (const StateWalks::Visit& visit : walk.visits) {
    const auto place = static_cast<std::size_t>(visit.node);
    EXPECT_TRUE(needed[place]);
    EXPECT_FALSE(seen[place]);
    seen[place] = true;
    int parent;
    if (visit.row >= 0) {
      const PassRow& row = rows[static_cast<std::size_t>(visit.row)];
      EXPECT_EQ(row.sequence, walk.sequence);
      EXPECT_EQ(row.node, visit.node);
      parent = row.parent;
    } else {
      EXPECT_LT(visit.node, walk.sequence->n_pending());
      parent = walk.sequence->parent(visit.node);
    }
    if (parent < 0) {
      EXPECT_EQ(visit.from, StateWalks::kKept);
    } else {
      EXPECT_EQ(holds[static_cast<std::size_t>(visit.from)], parent);
    }
    holds[static_cast<std::size_t>(visit.to)] = visit.node;
  }
  EXPECT_EQ(static_cast<int>(walk.visits.size()), n_needed);
  return n_needed;
}

TEST(StateWalks, FindEveryParentsStateInItsSlot) {
  std::mt19937 random(1);
  StateWalks walks;
  for (int round = 0; round < 400; ++round) {
    const auto shared = cache();
    std::vector<std::unique_ptr<KvSequence>> sequences;
    std::vector<PassRow> rows;
    for (int i = 0; i < 3; ++i) {
      sequences.push_back(std::make_unique<KvSequence>(shared));
      KvSequence& sequence = *sequences.back();
      const auto random_parent = [&](int node) {
        // Mostly near ones, so that trees are deep.
        const int back = static_cast<int>(random() % (random() % 4 == 0 ? node + 1 : 3)) + 1;
        return std::max(node - back, -1);
      };
      const int n_pending = static_cast<int>(random() % 30);
      sequence.ensure_slots(n_pending + 60);
      for (int node = 0; node < n_pending; ++node) sequence.append(random_parent(node));
      std::vector<int> parents;
      const int n_rows = 1 + static_cast<int>(random() % 60);
      for (int node = 0; node < n_rows; ++node) parents.push_back(random_parent(n_pending + node));
      add_rows(sequence, parents, rows);
    }
    walks.prepare(rows);
    ASSERT_EQ(walks.n_walks(), 3);
    unsigned most = 0;
    for (int i = 0; i < 3; ++i) {
      most = std::max(most, static_cast<unsigned>(follow(walks, i, rows)));
    }
    EXPECT_LE(walks.n_slots(), std::bit_width(most));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(StateWalks, AChainTakesOneSlotAndAStarOne) {
  const auto shared = cache();
  KvSequence sequence(shared);
  StateWalks walks;
  std::vector<PassRow> rows;
  add_rows(sequence, {-1, 0, 1, 2, 3, 4, 5, 6}, rows);
  walks.prepare(rows);
  EXPECT_EQ(walks.n_slots(), 1);
  EXPECT_EQ(follow(walks, 0, rows), 8);
  rows.clear();
  add_rows(sequence, {-1, -1, -1, -1}, rows);
  walks.prepare(rows);
  EXPECT_EQ(walks.n_slots(), 1);
  // A trunk with a leaf at every node: leaves come first, in the second slot.
  rows.clear();
  add_rows(sequence, {-1, 0, 0, 1, 1, 3, 3, 5, 5}, rows);
  walks.prepare(rows);
  EXPECT_EQ(walks.n_slots(), 2);
  EXPECT_EQ(follow(walks, 0, rows), 9);
}

}  // namespace
}  // namespace outrider
