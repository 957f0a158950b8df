// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/merging/merge_queue.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>

namespace outrider {
namespace {

// Random candidates in and out, for a short word and a long one, compared with an ordered set. A
// new candidate may precede all others.
TEST(MergeQueue, BestRankFirstLeftmostOnTies) {
  constexpr std::uint32_t kRanks = 300;
  std::mt19937 random(8);
  MergeQueue queue;  // reused, like a scratch object
  for (const std::size_t n_symbols : {10, 100000, 50, 3000, 100000}) {
    queue.start(n_symbols, kRanks);
    std::multiset<std::pair<std::uint32_t, std::uint32_t>> expected;
    const auto push = [&](std::uint32_t min_rank) {
      const std::uint32_t rank = min_rank + static_cast<std::uint32_t>(random()) % 40;
      const auto left = static_cast<std::uint32_t>(random() % n_symbols);
      if (rank >= kRanks) return;
      queue.push({rank, left});
      expected.insert({rank, left});
    };
    for (int i = 0; i < 2000; ++i) push(static_cast<std::uint32_t>(random()) % kRanks);
    MergeQueue::Candidate candidate{};
    std::size_t n_popped = 0;
    while (queue.pop(candidate)) {
      ASSERT_FALSE(expected.empty());
      ASSERT_EQ(*expected.begin(), (std::pair{candidate.rank, candidate.left}));
      expected.erase(expected.begin());
      // Sometimes a worse rank, a better one, or the same.
      if (++n_popped < 4000 && random() % 2 == 0) {
        push(random() % 3 == 0 && candidate.rank > 20 ? candidate.rank - 20 : candidate.rank);
      }
    }
    EXPECT_TRUE(expected.empty());
  }
}

}  // namespace
}  // namespace outrider
