// SPDX-License-Identifier: Apache-2.0
#include "model/cache/page_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace outrider {
namespace {

// As KvCache does: evicts as many pages as needed.
PageId take(PagePool& pool, int group, std::vector<PageId>* evicted = nullptr) {
  for (PageId page; (page = pool.evict_for(group)) != kNoPage;) {
    if (evicted != nullptr) evicted->push_back(page);
  }
  return pool.acquire(group);
}

TEST(PagePool, UsesFreePagesAgain) {
  const std::vector<std::size_t> bytes = {10};
  PagePool pool(bytes, PagePool::kUnbounded);
  const PageId first = take(pool, 0);
  const PageId second = take(pool, 0);
  EXPECT_NE(first, second);
  pool.share(first);
  EXPECT_TRUE(pool.is_shared(first));
  pool.release(first);
  EXPECT_FALSE(pool.is_shared(first));
  EXPECT_EQ(pool.n_free(), 0);
  EXPECT_EQ(pool.used_bytes(), 20u);
  pool.release(first);
  EXPECT_EQ(pool.n_free(), 1);
  EXPECT_EQ(pool.used_bytes(), 10u);
  EXPECT_EQ(pool.held_bytes(), 20u);
  EXPECT_EQ(take(pool, 0), first);
  EXPECT_EQ(pool.n_pages(), 2);
}

TEST(PagePool, GroupsShareOneBudget) {
  const std::vector<std::size_t> bytes = {10, 25};
  PagePool pool(bytes, 59);
  std::vector<PageId> small;
  for (int i = 0; i < 5; ++i) small.push_back(take(pool, 0));
  EXPECT_FALSE(pool.fits(std::vector<int>{1, 0}));
  EXPECT_FALSE(pool.fits(std::vector<int>{0, 1}));
  EXPECT_EQ(take(pool, 0), kNoPage);
  EXPECT_EQ(take(pool, 1), kNoPage);
  for (int i = 0; i < 3; ++i) pool.release(small[static_cast<std::size_t>(i)]);
  EXPECT_EQ(pool.held_bytes(), 50u);
  EXPECT_TRUE(pool.fits(std::vector<int>{1, 1}));
  EXPECT_FALSE(pool.fits(std::vector<int>{2, 1}));
  // Two of the three free pages give their memory to a page of the other group: 30 + 25.
  std::vector<PageId> evicted;
  const PageId large = take(pool, 1, &evicted);
  ASSERT_NE(large, kNoPage);
  EXPECT_EQ(evicted.size(), 2u);
  EXPECT_EQ(pool.n_bare(), 2);
  EXPECT_EQ(pool.n_free(), 1);
  EXPECT_EQ(pool.held_bytes(), 55u);
  EXPECT_NE(take(pool, 0), kNoPage);
  EXPECT_EQ(take(pool, 0), kNoPage);
  // Page ids without memory are reused before new ones are made.
  pool.release(large);
  EXPECT_NE(take(pool, 0, &evicted), kNoPage);
  EXPECT_EQ(evicted.back(), large);
  EXPECT_EQ(pool.n_pages(), 6);
  EXPECT_EQ(pool.held_bytes(), 40u);
}

// Compares with a list of users for every page.
TEST(PagePool, CountsAsANaiveListDoes) {
  std::mt19937 random(2);
  const auto below = [&](std::size_t n) { return random() % n; };
  const std::vector<std::size_t> bytes = {64, 192, 448};
  for (const std::size_t most : {std::size_t{448}, std::size_t{5000}, PagePool::kUnbounded}) {
    PagePool pool(bytes, most);
    std::multiset<PageId> users;
    std::map<PageId, std::size_t> group_of;
    std::set<PageId> bare;
    int n_refused = 0;
    for (int step = 0; step < 3000; ++step) {
      std::size_t used = 0;
      for (auto it = users.begin(); it != users.end(); it = users.upper_bound(*it)) {
        used += bytes[group_of[*it]];
      }
      ASSERT_EQ(pool.used_bytes(), used);
      ASSERT_LE(pool.held_bytes(), most);
      std::size_t held = 0;
      for (const auto& [page, group] : group_of) held += bare.contains(page) ? 0 : bytes[group];
      ASSERT_EQ(pool.held_bytes(), held);
      ASSERT_EQ(pool.n_bare(), static_cast<int>(bare.size()));
      ASSERT_EQ(pool.n_pages(), static_cast<int>(group_of.size()));
      const std::size_t action = below(5);
      if (action < 2) {
        const std::size_t group = below(3);
        std::vector<int> one(3, 0);
        one[group] = 1;
        std::vector<PageId> evicted;
        const bool fits = pool.fits(one);
        const PageId page = take(pool, static_cast<int>(group), &evicted);
        for (const PageId each : evicted) {
          ASSERT_FALSE(users.contains(each));
          ASSERT_TRUE(bare.insert(each).second);
        }
        ASSERT_EQ(fits, bytes[group] <= most - used);
        ASSERT_EQ(page != kNoPage, fits);
        if (page == kNoPage) {
          ASSERT_TRUE(evicted.empty());
          ++n_refused;
          continue;
        }
        ASSERT_FALSE(users.contains(page));
        ASSERT_EQ(group_of.try_emplace(page, group).first->second, group);
        ASSERT_EQ(pool.group_of(page), static_cast<int>(group));
        bare.erase(page);
        users.insert(page);
      } else if (!users.empty()) {
        const auto its = std::next(users.begin(), static_cast<std::ptrdiff_t>(below(users.size())));
        const PageId page = *its;
        ASSERT_EQ(pool.is_shared(page), users.count(page) > 1);
        if (action == 2) {
          pool.share(page);
          users.insert(page);
        } else {
          pool.release(page);
          users.erase(its);
        }
      }
    }
    EXPECT_EQ(n_refused > 0, most != PagePool::kUnbounded);
    EXPECT_EQ(bare.empty(), most == PagePool::kUnbounded);
  }
}

}  // namespace
}  // namespace outrider
