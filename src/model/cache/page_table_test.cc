// SPDX-License-Identifier: Apache-2.0
#include "model/cache/page_table.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace outrider {
namespace {

class PageTableTest : public ::testing::Test {
 protected:
  // A table with three pages.
  PageTable make_table() {
    PageTable table(pool_, 0);
    table.reserve(3);
    for (std::size_t i = 0; i < 3; ++i) table.put(i, pool_.acquire(0));
    return table;
  }

  static constexpr std::size_t kBytes[] = {1};
  PagePool pool_{kBytes, PagePool::kUnbounded};
};

TEST_F(PageTableTest, GivesUpPagesWithoutSlotsOfItsOwn) {
  PageTable table = make_table();
  table.drop_beyond(2 * kPageTokens + 1);
  EXPECT_EQ(table.n_pages(), 3u);
  table.drop_beyond(2 * kPageTokens);
  EXPECT_EQ(table.n_pages(), 2u);
  EXPECT_EQ(pool_.n_free(), 1);
  table.drop_beyond(1);
  EXPECT_EQ(table.n_pages(), 1u);
  table.drop_beyond(0);
  EXPECT_EQ(pool_.n_free(), 3);
}

TEST_F(PageTableTest, RemembersPagesThatAreGone) {
  PageTable table = make_table();
  table.drop_before(-5);
  table.drop_before(kPageTokens - 1);
  EXPECT_EQ(table.first_slot(), 0);
  EXPECT_EQ(pool_.n_free(), 0);
  table.drop_before(2 * kPageTokens + 3);
  EXPECT_EQ(table.first_slot(), 2 * kPageTokens);
  EXPECT_EQ(table.n_pages(), 3u);
  EXPECT_EQ(table.page(0), kNoPage);
  EXPECT_EQ(table.page_of(2 * kPageTokens - 1), kNoPage);
  EXPECT_NE(table.page_of(2 * kPageTokens), kNoPage);
  EXPECT_EQ(pool_.n_free(), 2);
  // Dropped pages stay dropped and are not released twice.
  table.drop_before(0);
  EXPECT_EQ(table.first_slot(), 2 * kPageTokens);
  table.drop_beyond(kPageTokens);
  EXPECT_EQ(table.n_pages(), 1u);
  EXPECT_EQ(table.first_slot(), kPageTokens);
  EXPECT_EQ(pool_.n_free(), 3);
  table.drop_beyond(0);
  EXPECT_EQ(table.first_slot(), 0);
  EXPECT_EQ(pool_.n_free(), 3);
}

TEST_F(PageTableTest, ForksUseTheSamePages) {
  {
    PageTable table = make_table();
    table.drop_before(kPageTokens);
    PageTable fork = table.fork(2 * kPageTokens);
    EXPECT_EQ(fork.n_pages(), 2u);
    EXPECT_EQ(fork.page(0), kNoPage);
    EXPECT_EQ(fork.page(1), table.page(1));
    EXPECT_EQ(fork.first_slot(), kPageTokens);
    EXPECT_TRUE(pool_.is_shared(table.page(1)));
    EXPECT_FALSE(pool_.is_shared(table.page(2)));
    const PageTable moved = std::move(fork);
    EXPECT_TRUE(pool_.is_shared(moved.page(1)));
    table.drop_beyond(0);
    EXPECT_FALSE(pool_.is_shared(moved.page(1)));
    EXPECT_EQ(pool_.n_free(), 2);
  }
  EXPECT_EQ(pool_.n_free(), 3);
}

}  // namespace
}  // namespace outrider
