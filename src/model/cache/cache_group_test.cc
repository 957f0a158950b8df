// SPDX-License-Identifier: Apache-2.0
#include "model/cache/cache_group.h"

#include <gtest/gtest.h>

#include <vector>

#include "outrider/error.h"

namespace outrider {
namespace {

using kernels::KvKind;

TEST(KvShape, BlocksAreWholeCacheLines) {
  for (const auto kind : {KvKind::f32, KvKind::bf16, KvKind::int8}) {
    for (int head_dim = 1; head_dim <= 130; ++head_dim) {
      const KvShape shape{.n_heads = 1, .head_dim = head_dim, .kind = kind};
      EXPECT_EQ(shape.block_bytes() % 64, 0u) << name_of(kind) << ' ' << head_dim;
      EXPECT_GT(shape.block_bytes(), 0u);
    }
  }
}

TEST(CacheGroups, EqualLayersAreOneGroup) {
  const std::vector<LayerCache> layers = {{.n_heads = 2, .head_dim = 8, .window = 100},
                                          {.n_heads = 2, .head_dim = 8},
                                          {.n_heads = 2, .head_dim = 8, .window = 100},
                                          {.n_heads = 2, .head_dim = 8, .window = 50},
                                          {.n_heads = 1, .head_dim = 8},
                                          {.n_heads = 2, .head_dim = 8},
                                          {.n_heads = 2, .head_dim = 4}};
  const std::vector<CacheGroup> groups = make_cache_groups(layers, KvKind::bf16);
  ASSERT_EQ(groups.size(), 5u);
  EXPECT_EQ(groups[0].layers, (std::vector<int>{0, 2}));
  EXPECT_EQ(groups[0].kind, CacheKind::window);
  EXPECT_EQ(groups[0].window, 100);
  EXPECT_EQ(groups[1].layers, (std::vector<int>{1, 5}));
  EXPECT_EQ(groups[1].kind, CacheKind::full);
  EXPECT_EQ(groups[1].window, 0);
  EXPECT_EQ(groups[2].layers, (std::vector<int>{3}));
  EXPECT_EQ(groups[2].window, 50);
  EXPECT_EQ(groups[3].layers, (std::vector<int>{4}));
  EXPECT_EQ(groups[3].shape.n_heads, 1);
  EXPECT_EQ(groups[4].shape.head_dim, 4);
  for (const CacheGroup& group : groups) {
    EXPECT_EQ(group.shape.kind, KvKind::bf16);
    EXPECT_EQ(group.page_bytes(), group.layers.size() * group.shape.layer_bytes());
  }
  // Two heads of eight bf16 elements: keys and values of 64 tokens.
  EXPECT_GE(groups[0].page_bytes(), 2u * 2 * 2 * 8 * 2 * 64);
}

// Values that are a part of the keys take no further memory.
TEST(CacheGroups, KeysThatHoldValuesHaveNoBlocksOfValues) {
  const std::vector<LayerCache> layers = {{.n_heads = 1, .head_dim = 28},
                                          {.n_heads = 1, .head_dim = 28, .values_in_keys = 20},
                                          {.n_heads = 1, .head_dim = 28, .values_in_keys = 20},
                                          {.n_heads = 1, .head_dim = 28, .values_in_keys = 16}};
  const std::vector<CacheGroup> groups = make_cache_groups(layers, KvKind::int8);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[1].layers, (std::vector<int>{1, 2}));
  EXPECT_TRUE(groups[0].shape.has_values());
  EXPECT_FALSE(groups[1].shape.has_values());
  EXPECT_EQ(groups[0].shape.value_dim(), 28);
  EXPECT_EQ(groups[1].shape.value_dim(), 20);
  EXPECT_EQ(groups[1].shape.layer_bytes(), groups[0].shape.block_bytes());
  EXPECT_EQ(groups[0].shape.layer_bytes(), 2 * groups[0].shape.block_bytes());
}

TEST(CacheGroups, RefusesLayersThatCannotBe) {
  EXPECT_THROW(make_cache_groups({}, KvKind::f32), Error);
  for (const LayerCache& layer :
       {LayerCache{.n_heads = 0, .head_dim = 8}, LayerCache{.n_heads = 1, .head_dim = 0},
        LayerCache{.n_heads = 1, .head_dim = 8, .window = -1},
        LayerCache{.n_heads = 1, .head_dim = 8, .values_in_keys = 9},
        LayerCache{.n_heads = 1, .head_dim = 8, .values_in_keys = -1}}) {
    EXPECT_THROW(make_cache_groups({&layer, 1}, KvKind::f32), Error);
  }
}

}  // namespace
}  // namespace outrider
