// SPDX-License-Identifier: Apache-2.0
#include "model/cache/state_snapshots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "model/cache/cache_group.h"

namespace outrider {
namespace {

constexpr std::size_t kBytes[] = {64};

void come_to(StateSnapshots& snapshots, PagePool& pool, int border) {
  snapshots.thin(border * kPageTokens);
  snapshots.add({border * kPageTokens, pool.acquire(0)});
}

TEST(StateSnapshots, AreAsManyAsTheLogarithmOfTheText) {
  PagePool pool(kBytes, PagePool::kUnbounded);
  StateSnapshots snapshots(pool);
  for (int border = 1; border <= 5000; ++border) {
    come_to(snapshots, pool, border);
    ASSERT_LE(snapshots.all().size(), std::bit_width(static_cast<unsigned>(border)));
    ASSERT_EQ(pool.n_used(), static_cast<int>(snapshots.all().size()));
    ASSERT_TRUE(std::is_sorted(
        snapshots.all().begin(), snapshots.all().end(),
        [](const StateSnapshot& a, const StateSnapshot& b) { return a.n_tokens < b.n_tokens; }));
  }
}

TEST(StateSnapshots, GoingBackRunsLessThanThriceAsMuchAgain) {
  PagePool pool(kBytes, PagePool::kUnbounded);
  StateSnapshots snapshots(pool);
  for (int border = 1; border <= 300; ++border) {
    come_to(snapshots, pool, border);
    for (int back = 0; back <= border; ++back) {
      const StateSnapshot* found = snapshots.last_until((border - back) * kPageTokens);
      const int at = found == nullptr ? 0 : found->n_tokens / kPageTokens;
      ASSERT_LE(at, border - back);
      ASSERT_LE(border - back - at, std::max(3 * back - 1, 0)) << border << " " << back;
    }
  }
}

TEST(StateSnapshots, ForksShareTheirPages) {
  PagePool pool(kBytes, PagePool::kUnbounded);
  StateSnapshots snapshots(pool);
  for (int border = 1; border <= 4; ++border) come_to(snapshots, pool, border);
  const int n_own = snapshots.n_own_pages();
  EXPECT_EQ(n_own, static_cast<int>(snapshots.all().size()));
  {
    StateSnapshots fork = snapshots.fork();
    EXPECT_EQ(snapshots.n_own_pages(), 0);
    EXPECT_EQ(pool.n_used(), n_own);
    StateSnapshots moved = std::move(fork);
    moved.drop_beyond(2 * kPageTokens);
    EXPECT_EQ(moved.last_until(1000)->n_tokens, 2 * kPageTokens);
    EXPECT_GT(snapshots.n_own_pages(), 0);
  }
  EXPECT_EQ(snapshots.n_own_pages(), n_own);
  EXPECT_EQ(snapshots.last_until(kPageTokens - 1), nullptr);
  snapshots.drop_beyond(-1);
  EXPECT_EQ(pool.n_used(), 0);
}

}  // namespace
}  // namespace outrider
