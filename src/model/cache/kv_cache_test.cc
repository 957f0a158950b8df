// SPDX-License-Identifier: Apache-2.0
#include "model/cache/kv_cache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "outrider/error.h"

namespace outrider {
namespace {

constexpr LayerCache kFull{.n_heads = 2, .head_dim = 16};
constexpr LayerCache kWindow{.n_heads = 1, .head_dim = 8, .window = 10};

TEST(KvCache, PlacesLayersInTheirGroupsPages) {
  const std::vector<LayerCache> layers = {kWindow, kFull, kWindow, kFull, kFull};
  const KvCache cache(layers, kernels::KvKind::bf16);
  EXPECT_EQ(cache.place(0).group, 0);
  EXPECT_EQ(cache.place(1).group, 1);
  EXPECT_EQ(cache.place(2).at_bytes, cache.shape(0).layer_bytes());
  EXPECT_EQ(cache.place(3).at_bytes, cache.shape(1).layer_bytes());
  EXPECT_EQ(cache.place(4).at_bytes, 2 * cache.shape(1).layer_bytes());
  EXPECT_EQ(cache.shape(2).n_heads, 1);
  EXPECT_EQ(cache.shape(4).n_heads, 2);
  EXPECT_EQ(cache.group_of(2).window, 10);
  EXPECT_EQ(cache.token_bytes(),
            (2 * cache.shape(0).layer_bytes() + 3 * cache.shape(1).layer_bytes()) / kPageTokens);
}

TEST(KvCache, RefusesLessMemoryThanAPageOfEveryGroup) {
  const std::vector<LayerCache> layers = {kWindow, kFull};
  const std::size_t least = KvCache(layers, kernels::KvKind::f32).token_bytes() * kPageTokens;
  EXPECT_NO_THROW(KvCache(layers, kernels::KvKind::f32, least));
  try {
    const KvCache cache(layers, kernels::KvKind::f32, least - 1);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find(std::to_string(least)), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("--kv-memory"), std::string::npos);
  }
}

// Memory moves from one group to the other and back, and never exceeds the budget.
TEST(KvCache, GroupsTakeEachOthersMemory) {
  const std::vector<LayerCache> layers = {kWindow, kFull};
  const std::size_t least = KvCache(layers, kernels::KvKind::f32).token_bytes() * kPageTokens;
  KvCache cache(layers, kernels::KvKind::f32, 20 * least);
  const auto fill = [&](int group) {
    PageTable table(cache.pool(), group);
    const std::size_t page_bytes = cache.groups()[static_cast<std::size_t>(group)].page_bytes();
    const auto n_pages = static_cast<int>(20 * least / page_bytes);
    const SlotRange all{&table, 0, n_pages * kPageTokens, 0};
    cache.own({&all, 1}, "test");
    for (std::size_t i = 0; i < table.n_pages(); ++i) {
      std::memset(cache.store().bytes(table.page(i)), group + 1, page_bytes);
    }
    for (std::size_t i = 0; i < table.n_pages(); ++i) {
      EXPECT_EQ(cache.store().bytes(table.page(i))[page_bytes - 1], std::byte(group + 1));
    }
    EXPECT_LE(cache.pool().held_bytes(), 20 * least);
    EXPECT_GT(cache.pool().used_bytes(), 20 * least - page_bytes);
    const SlotRange more{&table, all.end, all.end + 1, all.end};
    EXPECT_THROW(cache.own({&more, 1}, "test"), Error);
    EXPECT_EQ(table.n_pages(), static_cast<std::size_t>(n_pages));
  };
  fill(0);
  fill(1);
  const int n_pages = cache.pool().n_pages();
  fill(0);
  fill(1);
  EXPECT_EQ(cache.pool().n_pages(), n_pages);
  EXPECT_EQ(cache.pool().used_bytes(), 0u);
}

}  // namespace
}  // namespace outrider
